#!/bin/sh
# Dual stack on one card.
C=eth0
tc qdisc del dev $C root 2>/dev/null
tc qdisc add dev $C root handle 1: prio bands 4 priomap 2 3 3 3 2 3 1 1 2 2 2 2 2 2 2 2
tc qdisc add dev $C parent 1:1 handle 11: tbf rate 1mbit burst 8kb latency 50ms
tc qdisc add dev $C parent 1:2 handle 12: fq_codel
tc qdisc add dev $C parent 1:3 handle 13: fq_codel
tc qdisc add dev $C parent 1:4 handle 14: fq_codel
tc filter add dev $C parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:1
tc filter add dev $C parent 1: protocol ipv6 prio 2 u32 match u8 17 0xff at 9 match ip6 dport 53 0xffff flowid 1:1
tc filter add dev $C parent 1: protocol ipv6 prio 2 u32 match ip6 dst 2001:db8:1::/48 flowid 1:4
tc filter add dev $C parent 1: protocol arp prio 3 matchall classid 1:2
# expect: PS273 11
# expect: PS190 11
