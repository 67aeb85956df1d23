#!/bin/bash
set -eu
WAN6=2001:db8:0:1::2/64
LAN6=2001:db8:0:2::1/64
sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.conf.eth0.accept_ra=2
ip -6 addr add "$WAN6" dev eth0
ip -6 addr add "$LAN6" dev eth1
sleep 3
ip -6 route add default via 2001:db8:0:1::1 dev eth0
ip -6 route add unreachable 2001:db8:0::/48
ip -6 route add 2001:db8:9::/48 via 2001:db8:0:1::fe metric 7
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit ceil 5mbit prio 0
tc class add dev eth0 parent 1: classid 1:20 htb rate 4mbit ceil 5mbit prio 1
tc filter add dev eth0 parent 1: protocol ipv6 prio 1 u32 match ip6 priority 0xc0 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 2 flower ip_proto tcp dst_port 22 classid 1:10
ip -6 route show 2001:db8:9::/48
ip -6 -br addr show scope global
