#!/bin/bash
DEV=eth0 RATE="20mbit"
IFS= read -r first < /etc/hostname
test "$DEV" = eth0
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev $DEV root tbf rate $RATE burst 32k latency 50ms
