#!/bin/bash
# an ADSL uplink at full rate, no overhead counted
# expect: PS123 8
# ADSL 16000/1024, PPPoE
DEV=ppp0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:1 htb rate 1000kbit
tc class add dev $DEV parent 1:1 classid 1:10 htb rate 300kbit ceil 1000kbit prio 0
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 700kbit ceil 1000kbit prio 1
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
