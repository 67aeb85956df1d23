#!/bin/bash
# a limit below the share
# expect: PS133 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 10
tc class add dev eth0 parent 1: classid 1:10 hfsc ls m2 5mbit ul m2 2mbit
