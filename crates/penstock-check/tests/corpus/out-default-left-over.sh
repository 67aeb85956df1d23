#!/bin/sh
# default 30 but the classes are 1:11 and 1:12
# expect: PS107 7
set -e
DEV=${1:-eth0}
tc qdisc del dev "$DEV" root 2>/dev/null || true
tc qdisc add dev "$DEV" root handle 1: htb default 30
tc class add dev "$DEV" parent 1: classid 1:1 htb rate 95mbit
tc class add dev "$DEV" parent 1:1 classid 1:11 htb rate 60mbit ceil 95mbit
tc class add dev "$DEV" parent 1:1 classid 1:12 htb rate 35mbit ceil 95mbit
tc filter add dev "$DEV" parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:11
tc filter add dev "$DEV" parent 1: protocol ip prio 2 u32 match ip dst 203.0.113.0/24 flowid 1:12
