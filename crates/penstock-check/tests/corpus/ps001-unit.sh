#!/bin/bash
# a unit there is not, through a variable
# expect: PS001 6
tc qdisc del dev eth0 root 2>/dev/null
RATE=10mbits
tc qdisc add dev eth0 root tbf rate ${RATE} burst 10k latency 50ms
