#!/bin/bash
# a burst of four seconds
# expect: PS122 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 2mbit burst 1m latency 50ms
