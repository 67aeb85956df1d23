#!/bin/bash
# a router with two inside networks
sysctl -w net.ipv4.ip_forward=1
ip addr add 192.168.1.1/24 dev eth1
ip addr add 192.168.2.1/24 dev eth2
iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
for pair in eth1:192.168.1 eth2:192.168.2; do
  dev=${pair%%:*} net=${pair##*:}
  tc qdisc replace dev $dev root handle 1: htb default 20
  tc class add dev $dev parent 1: classid 1:1 htb rate 100mbit
  tc class add dev $dev parent 1:1 classid 1:10 htb rate 40mbit ceil 100mbit
  tc class add dev $dev parent 1:1 classid 1:20 htb rate 60mbit ceil 100mbit
  tc filter add dev $dev parent 1: protocol ip prio 1 u32 match ip dst $net.10/32 flowid 1:10
done
tc filter add dev eth2 parent 1: protocol ip prio 2 u32 match ip src 192.168.1.0/24 flowid 1:10
