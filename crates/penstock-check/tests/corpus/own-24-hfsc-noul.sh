#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 11
tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 4500kbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc sc umax 1500b dmax 20ms rate 500kbit
tc class add dev eth0 parent 1:1 classid 1:11 hfsc sc rate 4mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff match ip protocol 17 0xff flowid 1:10
# expect: PS283 4
