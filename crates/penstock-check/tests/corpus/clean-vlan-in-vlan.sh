#!/bin/bash
ip link add link eth0 name eth0.20 type vlan id 20
ip link add link eth0.20 name eth0.20.30 type vlan id 30
ip link set eth0.20 up
ip link set eth0.20.30 up
tc qdisc replace dev eth0.20 root handle 1: prio
tc filter add dev eth0.20 parent 1: protocol 802.1q prio 1 flower vlan_id 30 classid 1:1
