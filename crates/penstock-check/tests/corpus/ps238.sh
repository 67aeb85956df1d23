#!/bin/bash
# etho
# expect: PS175 10
# (said once)
# expect: PS238 16
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 10mbit
tc qdisc add dev eth0 parent 1:10 handle 10: fq_codel
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel
tc qdisc add dev eth0 parent 1:30 handle 30: fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.1.0/24 flowid 1:10
tc filter add dev etho parent 1: protocol ip prio 2 u32 match ip dst 10.0.2.0/24 flowid 1:20
