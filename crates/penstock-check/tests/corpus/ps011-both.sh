#!/bin/bash
# expect: PS011 4
DEV=eth0
RATE = 20mbit
RATE=${RATE:-10mbit}
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev $DEV root tbf rate $RATE burst 32k latency 50ms
