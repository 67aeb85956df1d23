#!/bin/bash
# a buffer of seconds by latency
# expect: PS141 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 5mbit burst 32kbit latency 2s
