#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 30
tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 10mbit ul rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m2 8mbit ls m2 5mbit
tc class add dev eth0 parent 1:1 classid 1:30 hfsc rt m2 6mbit ls m2 5mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff match ip protocol 6 0xff flowid 1:10
# expect: PS131 6
