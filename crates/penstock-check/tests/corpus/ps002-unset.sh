#!/bin/sh
DEV=eth0
tc qdisc add dev $DEVICE root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:20 htb rate 10mbit
# expect: PS002 3
