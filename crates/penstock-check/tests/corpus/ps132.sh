#!/bin/bash
# a real-time curve on an inner class
# expect: PS132 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 10
tc class add dev eth0 parent 1: classid 1:1 hfsc rt rate 5mbit ls rate 5mbit ul rate 5mbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc sc rate 5mbit
