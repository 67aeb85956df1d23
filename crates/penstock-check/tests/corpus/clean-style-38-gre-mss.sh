#!/bin/bash
ip tunnel add gre1 mode gre local 192.0.2.1 remote 198.51.100.7 ttl 64
ip link set gre1 up mtu 1476
ip addr add 10.50.0.1/30 dev gre1
iptables -t mangle -A FORWARD -o gre1 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
tc qdisc add dev gre1 root handle 1: tbf rate 30mbit burst 32kb latency 40ms
tc qdisc add dev gre1 parent 1:1 handle 2: fq_codel
