#!/bin/sh
# expect: PS203 12
modprobe ifb
ip link set ifb0 up
tc qdisc replace dev ifb0 root handle 1: cake bandwidth 20mbit diffserv4 nat ingress
tc qdisc replace dev eth1 root handle 2: cake bandwidth 2mbit diffserv4 nat
tc qdisc del dev eth1 ingress 2>/dev/null
tc qdisc add dev eth1 handle ffff: ingress
tc filter add dev eth1 parent ffff: matchall action mirred egress redirect dev ifb0
iptables -t mangle -A POSTROUTING -o eth1 -p tcp --dport 8443 -j MARK --set-mark 0x51
tc filter add dev eth1 pref 1 parent 2:0 handle 0x51/0xffff fw action skbedit priority 2:1
tc filter add dev ifb0 pref 1 parent 1:0 handle 0x51/0xffff fw action skbedit priority 1:1
