#!/bin/sh
# untagged hosts and one VLAN on the same wire: the filter is for the untagged ones
ip addr add 192.168.1.1/24 dev eth0
ip link add link eth0 name eth0.20 type vlan id 20
ip addr add 10.0.20.1/24 dev eth0.20
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 40mbit ceil 100mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 60mbit ceil 100mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 192.168.1.0/24 flowid 1:10
