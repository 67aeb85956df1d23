#!/bin/bash
# expect: PS005 4
HOUR=08
RATE=$((HOUR + 1))
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate ${RATE}mbit burst 32k latency 50ms
