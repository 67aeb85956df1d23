#!/bin/bash
# expect: PS238 6
ip link add link eth0 name vlan10 type vlan id 10
ip link set eth0 up
ip link set vlan10 up
tc qdisc replace dev eth0.10 root fq_codel
