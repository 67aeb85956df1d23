#!/bin/bash
# expect: PS005 4
UP=20mbit
CEIL=$((UP * 95 / 100))
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate ${CEIL}mbit burst 32k latency 50ms
