#!/bin/sh
IF=eth1
tc qdisc replace dev $IF root handle 1: prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
tc filter add dev $IF parent 1: protocol ipv6 prio 1 u32 match ip6 protocol 58 0xff flowid 1:1
tc filter add dev $IF parent 1: protocol ipv6 prio 2 flower ip_proto tcp dst_port 22 classid 1:1
tc filter add dev $IF parent 1: protocol ipv6 prio 3 flower src_ip 2001:db8:5::/64 classid 1:3
tc qdisc add dev $IF parent 1:1 handle 10: fq_codel
tc qdisc add dev $IF parent 1:2 handle 20: fq_codel
tc qdisc add dev $IF parent 1:3 handle 30: fq_codel
