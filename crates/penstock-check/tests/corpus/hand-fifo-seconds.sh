#!/bin/bash
# ADSL uplink, simple
DEV=ppp0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:1 htb rate 256kbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 128kbit ceil 256kbit prio 0
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 128kbit ceil 256kbit prio 1
tc qdisc add dev $DEV parent 1:10 handle 10: pfifo limit 100
tc qdisc add dev $DEV parent 1:20 handle 20: bfifo limit 200000
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip protocol 1 0xff flowid 1:10
# expect: PS123 6
# expect: PS140 9
# expect: PS140 10
