#!/bin/bash
# What is right and was once reported. Fibre, no DSL here.
DEV=ppp0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 10
tc class add dev $DEV parent 1: classid 1:10 htb rate 2mbit
tc qdisc add dev $DEV parent 1:10 fq_codel
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root handle 1: mq
tc qdisc add dev eth1 parent 1:1 fq
tc qdisc del dev eth2 root 2>/dev/null
tc qdisc add dev eth2 root handle 1: tbf rate 500mbit burst 20kb latency 20ms
tc qdisc del dev eth3 root 2>/dev/null
tc qdisc add dev eth3 root handle 1: htb default 1
tc class add dev eth3 parent 1: classid 1:1 htb rate 9500mbit burst 2m quantum 60000
tc qdisc add dev eth3 parent 1:1 fq_codel
tc qdisc del dev eth4 ingress 2>/dev/null
tc qdisc add dev eth4 handle ffff: ingress
tc filter add dev eth4 parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate 1mbit burst 20k flowid :1
