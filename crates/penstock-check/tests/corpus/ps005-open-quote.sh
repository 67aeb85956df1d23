#!/bin/bash
# expect: PS005 4
ip link set eth0 up
DEV="eth0
RATE=10mbit
tc qdisc replace dev $DEV root tbf rate $RATE burst 32kb latency 50ms
