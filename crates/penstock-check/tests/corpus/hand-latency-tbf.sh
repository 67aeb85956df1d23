#!/bin/bash
# "no drops please"
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 1mbit burst 10kb latency 4s
# expect: PS141 4
