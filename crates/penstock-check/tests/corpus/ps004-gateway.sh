#!/bin/sh
# a gateway that no address reaches
# expect: PS004 6
ip addr add 192.168.1.2/24 dev eth0
ip link set eth0 up
ip route add default via 10.9.9.1
tc qdisc replace dev eth0 root fq_codel
