#!/bin/bash
# 100 is microseconds
# expect: PS162 6
DELAY=100
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root netem delay $DELAY
