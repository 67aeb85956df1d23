#!/bin/bash
# a default in the wrong base
# expect: PS107 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 0x20
tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit
tc class add dev eth0 parent 1:1 classid 1:32 htb rate 5mbit
