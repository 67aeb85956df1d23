#!/bin/sh
# Downloads by the mark of their connection.
WAN=eth0; IFB=ifb0; DOWN=80mbit
modprobe ifb numifbs=1
ip link set $IFB up
for t in iptables ip6tables; do
    $t -t mangle -F SHAPE 2>/dev/null || $t -t mangle -N SHAPE
    $t -t mangle -C POSTROUTING -o $WAN -j SHAPE 2>/dev/null || $t -t mangle -A POSTROUTING -o $WAN -j SHAPE
    $t -t mangle -A SHAPE -p tcp --dport 119 -j CONNMARK --set-mark 3
    $t -t mangle -A SHAPE -p udp --dport 3478:3481 -j CONNMARK --set-mark 1
done
tc qdisc del dev $WAN ingress 2>/dev/null
tc qdisc add dev $WAN ingress
tc filter add dev $WAN parent ffff: protocol all prio 1 matchall action connmark pipe action mirred egress redirect dev $IFB
tc qdisc replace dev $IFB root handle 1: htb default 2
tc class add dev $IFB parent 1: classid 1:9 htb rate $DOWN
tc class add dev $IFB parent 1:9 classid 1:1 htb rate 20mbit ceil $DOWN prio 0
tc class add dev $IFB parent 1:9 classid 1:2 htb rate 50mbit ceil $DOWN prio 1
tc class add dev $IFB parent 1:9 classid 1:3 htb rate 10mbit ceil $DOWN prio 2
for c in 1 2 3; do tc qdisc add dev $IFB parent 1:$c fq_codel; done
tc filter add dev $IFB parent 1: protocol all prio 1 handle 1 fw flowid 1:1
tc filter add dev $IFB parent 1: protocol all prio 1 handle 3 fw flowid 1:3
