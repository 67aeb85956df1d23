#!/bin/bash
ip netns add c1
ip link add veth0 type veth peer name veth1
ip link set veth1 netns c1
ip addr add 10.0.3.1/24 dev veth0
ip netns exec c1 ip addr add 10.0.3.2/24 dev veth1
ip link set veth0 up
tc qdisc add dev veth0 root handle 1: htb default 20
tc class add dev veth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev veth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev veth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev veth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.3.2/32 flowid 1:10
# expect: PS224 12
