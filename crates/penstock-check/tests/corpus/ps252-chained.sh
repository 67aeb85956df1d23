#!/bin/bash
# expect: PS252 4
DEV=eth0
tc qdisc del dev $DEV root && tc qdisc add dev $DEV root handle 1: htb default 10 && \
  tc class add dev $DEV parent 1: classid 1:10 htb rate 10mbit
