#!/bin/bash
# a class below a classless qdisc
# expect: PS002 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: pfifo limit 100
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
