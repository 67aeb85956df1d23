#!/bin/sh
# with: --dev eth1 --rate 20mbit
IF=eth1
tc qdisc del dev $IF root >/dev/null 2>&1
tc qdisc add dev $IF root handle 1: htb default 12 r2q 20
tc class add dev $IF parent 1: classid 1:1 htb rate 100mbit ceil 100mbit
tc class add dev $IF parent 1:1 classid 1:11 htb rate 8mbit ceil 20mbit
tc class add dev $IF parent 1:1 classid 1:12 htb rate 12mbit ceil 20mbit
tc qdisc add dev $IF parent 1:11 sfq perturb 10
tc qdisc add dev $IF parent 1:12 sfq perturb 10
tc filter add dev $IF parent 1: protocol ip prio 1 handle 11 fw classid 1:11
iptables -t mangle -A POSTROUTING -o $IF -p udp --dport 5060 -j MARK --set-mark 11
# expect: PS104 6
