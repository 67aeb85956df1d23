#!/bin/sh
# no more than 8 mbit of UDP comes in
D=eth0
tc qdisc del dev $D ingress 2>/dev/null
tc qdisc add dev $D ingress handle ffff:
tc filter add dev $D parent ffff: protocol ip prio 5 u32 match ip protocol 17 0xff police rate 8mbit burst 64k mtu 2k drop flowid :1
tc filter add dev $D parent ffff: protocol ipv6 prio 6 u32 match ip6 protocol 17 0xff police rate 8mbit burst 64k mtu 2k drop flowid :1
