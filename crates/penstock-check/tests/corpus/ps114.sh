#!/bin/bash
# kbps
# expect: PS114 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 512kbps burst 20k latency 50ms
