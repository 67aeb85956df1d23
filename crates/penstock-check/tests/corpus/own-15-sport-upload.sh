#!/bin/sh
# upload: give the web a class
tc qdisc del dev ppp0 root 2>/dev/null
tc qdisc add dev ppp0 root handle 1: htb default 20
tc class add dev ppp0 parent 1: classid 1:1 htb rate 5mbit
tc class add dev ppp0 parent 1:1 classid 1:10 htb rate 3mbit ceil 5mbit
tc class add dev ppp0 parent 1:1 classid 1:20 htb rate 2mbit ceil 5mbit
tc filter add dev ppp0 parent 1:0 protocol ip prio 1 u32 match ip sport 80 0xffff match ip dport 80 0xffff flowid 1:10
# expect: PS190 8
# expect: PS183 8
