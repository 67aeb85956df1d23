#!/bin/sh
# ADSL2+ uplink 1 Mbit/s
IFACE=ppp0
tc qdisc del dev $IFACE root 2>/dev/null
tc qdisc add dev $IFACE root handle 1: htb default 12
tc class add dev $IFACE parent 1: classid 1:1 htb rate 1000kbit ceil 1000kbit
tc class add dev $IFACE parent 1:1 classid 1:11 htb rate 300kbit ceil 1000kbit prio 1
tc class add dev $IFACE parent 1:1 classid 1:12 htb rate 700kbit ceil 1000kbit prio 2
tc qdisc add dev $IFACE parent 1:11 fq_codel target 20ms
tc qdisc add dev $IFACE parent 1:12 fq_codel target 20ms
tc filter add dev $IFACE parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:11
# expect: PS123 6
