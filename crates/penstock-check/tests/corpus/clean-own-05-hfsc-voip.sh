#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 12
tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 9500kbit ul rate 9500kbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc sc umax 1500b dmax 30ms rate 1mbit ul rate 9500kbit
tc class add dev eth0 parent 1:1 classid 1:12 hfsc ls rate 8mbit ul rate 9500kbit
tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 50
tc qdisc add dev eth0 parent 1:12 handle 12: fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:10
