#!/bin/sh
# Two tunnels over one uplink: each shapes what goes in by a qdisc of its own, the uplink shares by flow. SYNs are clamped to what fits.
ip tunnel add site mode gre local 192.0.2.2 remote 198.51.100.2 ttl 255 key 7 dev eth0
ip addr add 10.255.0.1/30 dev site
ip link set site up
ip link add vx7 type vxlan id 7 local 192.0.2.2 remote 198.51.100.3 dstport 4789 dev eth0
bridge fdb append 00:00:00:00:00:00 dev vx7 dst 198.51.100.4
ip link set vx7 up
iptables -t mangle -A FORWARD -o site -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root cake bandwidth 9mbit
tc qdisc add dev site root handle 1: htb default 20
tc class add dev site parent 1: classid 1:1 htb rate 4mbit
tc class add dev site parent 1:1 classid 1:10 htb rate 1mbit ceil 4mbit prio 0
tc class add dev site parent 1:1 classid 1:20 htb rate 3mbit ceil 4mbit prio 1
tc qdisc add dev site parent 1:10 fq_codel
tc qdisc add dev site parent 1:20 fq_codel
tc filter add dev site parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 5060 0xffff flowid 1:10
