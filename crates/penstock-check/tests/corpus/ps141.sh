#!/bin/bash
# tbf with seconds of latency
# expect: PS141 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 1mbit burst 10k latency 4s
