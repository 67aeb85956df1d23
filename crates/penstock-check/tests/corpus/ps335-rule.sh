#!/bin/bash
# expect: PS335 9
ip addr add 192.0.2.2/24 dev eth0
ip addr add 198.51.100.2/24 dev eth1
ip link set eth0 up; ip link set eth1 up
ip route add default via 192.0.2.1
ip route add default via 198.51.100.1 table 100
# penstock-check: PS335
ip rule add fwmark 0x100/0xff table 100
ip rule add fwmark 0x100/0xff00 table 100
iptables -t mangle -A PREROUTING -s 10.0.0.0/25 -j MARK --set-mark 0x100
tc qdisc replace dev eth1 root fq_codel
