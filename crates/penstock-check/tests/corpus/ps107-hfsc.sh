#!/bin/bash
# hfsc with a default that is not there
# expect: PS107 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 5
tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 5mbit ul m2 5mbit
