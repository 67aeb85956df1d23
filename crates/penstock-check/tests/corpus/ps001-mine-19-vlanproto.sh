#!/bin/sh
# A trunk: VLAN 30 for phones, VLAN 40 for guests.
T=eth0
ip link add link $T name $T.30 type vlan id 30
ip link add link $T name $T.40 type vlan id 40
ip link set $T.30 up
ip link set $T.40 up
tc qdisc del dev $T root 2>/dev/null
tc qdisc add dev $T root handle 1: htb default 40
tc class add dev $T parent 1: classid 1:1 htb rate 100mbit
tc class add dev $T parent 1:1 classid 1:30 htb rate 20mbit ceil 100mbit prio 0
tc class add dev $T parent 1:1 classid 1:40 htb rate 80mbit ceil 100mbit prio 1
tc filter add dev $T parent 1: protocol ip prio 1 flower vlan_id 30 classid 1:30
# expect: PS001 13
