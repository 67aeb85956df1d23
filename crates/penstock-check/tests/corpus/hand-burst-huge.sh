#!/bin/bash
DEV=eth0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 10
tc class add dev $DEV parent 1: classid 1:10 htb rate 2mbit burst 4mb
tc qdisc add dev $DEV parent 1:10 fq_codel
# expect: PS122 5
