#!/bin/bash
WAN=eth0
ip link add ifb0 type ifb 2>/dev/null
ip link set ifb0 up
tc qdisc del dev $WAN root 2>/dev/null; tc qdisc del dev $WAN ingress 2>/dev/null; tc qdisc del dev ifb0 root 2>/dev/null
# outgoing connections are marked once, the mark is kept with the connection
iptables -t mangle -F
iptables -t mangle -A POSTROUTING -o $WAN -j CONNMARK --restore-mark
iptables -t mangle -A POSTROUTING -o $WAN -m mark ! --mark 0 -j RETURN
iptables -t mangle -A POSTROUTING -o $WAN -p udp --dport 3478:3481 -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o $WAN -p tcp --dport 443 -j MARK --set-mark 2
iptables -t mangle -A POSTROUTING -o $WAN -j CONNMARK --save-mark
for d in $WAN ifb0; do
  tc qdisc add dev $d root handle 1: htb default 30
  tc class add dev $d parent 1: classid 1:1 htb rate 40mbit
  tc class add dev $d parent 1:1 classid 1:10 htb rate 10mbit ceil 40mbit prio 0
  tc class add dev $d parent 1:1 classid 1:20 htb rate 20mbit ceil 40mbit prio 1
  tc class add dev $d parent 1:1 classid 1:30 htb rate 10mbit ceil 40mbit prio 2
  for c in 10 20 30; do tc qdisc add dev $d parent 1:$c fq_codel; done
  tc filter add dev $d parent 1: protocol all prio 1 handle 1 fw flowid 1:10
  tc filter add dev $d parent 1: protocol all prio 2 handle 2 fw flowid 1:20
done
tc qdisc add dev $WAN handle ffff: ingress
tc filter add dev $WAN parent ffff: protocol all prio 1 u32 match u32 0 0 action connmark action mirred egress redirect dev ifb0
