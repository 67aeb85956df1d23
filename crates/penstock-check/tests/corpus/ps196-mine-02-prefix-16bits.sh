#!/bin/sh
# Download side by way of an ifb.
IN=eth1
IFB=ifb4eth1
DOWN=48mbit
modprobe ifb numifbs=0
ip link show "$IFB" >/dev/null 2>&1 || ip link add name "$IFB" type ifb
ip link set dev "$IFB" up
tc qdisc del dev "$IN" ingress 2>/dev/null
tc qdisc del dev "$IFB" root 2>/dev/null
tc qdisc add dev "$IN" handle ffff: ingress
tc filter add dev "$IN" parent ffff: protocol all prio 10 matchall action mirred egress redirect dev "$IFB"
tc qdisc add dev "$IFB" root handle 2: htb default 20
tc class add dev "$IFB" parent 2: classid 2:1 htb rate $DOWN ceil $DOWN
tc class add dev "$IFB" parent 2:1 classid 2:10 htb rate 16mbit ceil $DOWN prio 0
tc class add dev "$IFB" parent 2:1 classid 2:20 htb rate 32mbit ceil $DOWN prio 1
tc qdisc add dev "$IFB" parent 2:10 fq_codel
tc qdisc add dev "$IFB" parent 2:20 fq_codel
tc filter add dev "$IFB" parent 2: protocol ip prio 1 u32 match ip sport 443 0xffff match ip protocol 17 0xff flowid 2:10
tc filter add dev "$IFB" parent 2: protocol ip prio 2 u32 match ip src 203.0.113.7/24 flowid 2:10
# expect: PS196 20
