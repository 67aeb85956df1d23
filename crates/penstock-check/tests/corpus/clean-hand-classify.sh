#!/bin/sh
# classes by CLASSIFY, no tc filters
W=eth1
tc qdisc del dev $W root 2>/dev/null
tc qdisc add dev $W root handle 1: htb default 20
tc class add dev $W parent 1: classid 1:1 htb rate 30mbit
tc class add dev $W parent 1:1 classid 1:10 htb rate 10mbit ceil 30mbit prio 0
tc class add dev $W parent 1:1 classid 1:20 htb rate 20mbit ceil 30mbit prio 1
tc qdisc add dev $W parent 1:10 handle 10: fq_codel
tc qdisc add dev $W parent 1:20 handle 20: fq_codel
iptables -t mangle -N QOS 2>/dev/null || iptables -t mangle -F QOS
iptables -t mangle -C POSTROUTING -o $W -j QOS 2>/dev/null || iptables -t mangle -A POSTROUTING -o $W -j QOS
iptables -t mangle -A QOS -p udp -m multiport --dports 53,123,5060 -j CLASSIFY --set-class 1:10
iptables -t mangle -A QOS -p tcp -m length --length :128 -j CLASSIFY --set-class 1:10
