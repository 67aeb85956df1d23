#!/bin/bash
# Router: marks on the way through, classes at the WAN card.
LAN=eth0; WAN=eth1
iptables -t mangle -F
iptables -t mangle -N SHAPE
iptables -t mangle -A FORWARD -o $WAN -j SHAPE
iptables -t mangle -A SHAPE -j CONNMARK --restore-mark
iptables -t mangle -A SHAPE -m mark ! --mark 0 -j RETURN
iptables -t mangle -A SHAPE -p udp --dport 5060:5061 -j MARK --set-mark 1
iptables -t mangle -A SHAPE -p tcp -m multiport --dports 80,443 -j MARK --set-mark 2
iptables -t mangle -A SHAPE -j MARK --set-mark 3
iptables -t mangle -A SHAPE -j CONNMARK --save-mark
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE

tc qdisc del dev $WAN root 2> /dev/null
tc qdisc add dev $WAN root handle 1: htb default 13
tc class add dev $WAN parent 1: classid 1:1 htb rate 20mbit
tc class add dev $WAN parent 1:1 classid 1:11 htb rate 2mbit ceil 20mbit prio 1
tc class add dev $WAN parent 1:1 classid 1:12 htb rate 10mbit ceil 20mbit prio 2
tc class add dev $WAN parent 1:1 classid 1:13 htb rate 8mbit ceil 20mbit prio 3
for n in 1 2 3; do
  tc qdisc add dev $WAN parent 1:1$n handle 1$n: sfq perturb 10
  tc filter add dev $WAN parent 1: protocol ip prio $n handle $n fw flowid 1:1$n
done
# expect: PS208 11
