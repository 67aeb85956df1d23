#!/bin/bash
ip link add name br-lan type bridge
ip link set dev eth1 master br-lan
ip link set dev eth2 master br-lan
ip link set br-lan up
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root handle 1: htb default 10
tc class add dev eth1 parent 1: classid 1:10 htb rate 10mbit
tc qdisc add dev eth1 parent 1:10 fq_codel
# expect: PS239 7
