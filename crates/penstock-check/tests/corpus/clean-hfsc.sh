#!/bin/bash
# hfsc with a real-time leaf
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 30
tc class add dev eth0 parent 1: classid 1:1 hfsc ls rate 10mbit ul rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m1 2mbit d 10ms m2 1mbit ls m2 5mbit
tc class add dev eth0 parent 1:1 classid 1:30 hfsc ls m2 5mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
