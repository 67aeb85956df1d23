#!/bin/sh
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
for p in 80 443; do
  tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip sport $p 0xffff match ip dport $p 0xffff flowid 1:10
done
tc filter add dev eth0 parent 1: protocol ip prio 2 flower ip_proto tcp src_port 22 dst_port 22 classid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p udp --sport 123 --dport 123 -j CLASSIFY --set-class 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --sport 25 --dport 25 -j CLASSIFY --set-class 1:10
# expect: PS183 7
# expect: PS183 9
# expect: PS183 11
