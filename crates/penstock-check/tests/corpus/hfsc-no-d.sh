#!/bin/sh
# expect: PS284 5
tc qdisc replace dev eth1 root handle 1: hfsc default 11
tc class replace dev eth1 parent 1: classid 1:1 hfsc sc rate 400mbit ul rate 400mbit
tc class replace dev eth1 parent 1:1 classid 1:10 hfsc ls m1 300mbit m2 200mbit
tc class replace dev eth1 parent 1:1 classid 1:11 hfsc ls m1 0bit m2 111mbit
tc filter replace dev eth1 parent 1: protocol ip prio 1 u32 match ip dst 192.0.2.1/32 flowid 1:10
