#!/bin/bash
# marks set in POSTROUTING and read by fw
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 10mbit
tc qdisc add dev eth0 parent 1:10 handle 10: fq_codel
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel
tc qdisc add dev eth0 parent 1:30 handle 30: fq_codel
for m in 10 20; do
  tc filter add dev eth0 parent 1: protocol ip prio $m handle $m fw flowid 1:$m
done
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 10
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark 20
