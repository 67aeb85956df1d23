#!/bin/sh
# sfq leaves without perturb
# expect: PS146 10
# expect: PS146 11
tc qdisc del dev ppp0 root 2>/dev/null
tc qdisc add dev ppp0 root handle 1: htb default 20
tc class add dev ppp0 parent 1: classid 1:1 htb rate 5mbit overhead 8
tc class add dev ppp0 parent 1:1 classid 1:10 htb rate 2mbit ceil 5mbit prio 0 overhead 8
tc class add dev ppp0 parent 1:1 classid 1:20 htb rate 3mbit ceil 5mbit prio 1 overhead 8
tc qdisc add dev ppp0 parent 1:10 handle 10: sfq
tc qdisc add dev ppp0 parent 1:20 handle 20: sfq
tc filter add dev ppp0 parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
