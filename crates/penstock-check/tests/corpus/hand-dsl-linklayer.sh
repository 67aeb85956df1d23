#!/bin/bash
# VDSL upstream with pppoe
DEV=ppp0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root tbf rate 640kbit burst 5k latency 70ms
# expect: PS123 5
