#!/bin/sh
# expect: PS238 10
set -e
PHY=eth0
VID=200
ip link add link $PHY name $PHY.$VID type vlan id $VID
ip addr add 172.20.0.1/24 dev $PHY.$VID
ip link set $PHY.$VID up

tc qdisc replace dev eth0.20 root handle 1: htb default 10
tc class replace dev eth0.20 parent 1: classid 1:10 htb rate 50mbit ceil 50mbit
tc qdisc replace dev eth0.20 parent 1:10 fq_codel
