#!/bin/sh
# expect: PS192 7
# expect: PS001 9
IF=eth1
tc qdisc del dev $IF root 2>/dev/null
tc qdisc add dev $IF root handle 1: prio
tc filter add dev $IF parent 1: protocol ip prio 1 u32 match ip6 dport 22 0xffff flowid 1:1
tc filter add dev $IF parent 1: protocol ipv6 prio 2 flower ip_proto tcp dst_port 443 classid 1:2
tc filter add dev $IF parent 1: protocol ipv6 prio 3 flower src_ip 192.0.2.0/24 classid 1:3

# expect: PS190 7
