#!/bin/bash
# a VLAN device
ip link add link eth0 name eth0.100 type vlan id 100
ip link set eth0.100 up
tc qdisc replace dev eth0.100 root handle 1: htb default 10
tc class add dev eth0.100 parent 1: classid 1:10 htb rate 5mbit
