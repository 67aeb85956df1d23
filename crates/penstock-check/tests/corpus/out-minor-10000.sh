#!/bin/bash
# class ids have sixteen bits
# expect: PS001 8
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 2
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:2 htb rate 50mbit ceil 100mbit
tc class add dev eth0 parent 1:1 classid 1:10001 htb rate 50mbit ceil 100mbit
