#!/bin/bash
# What is not here is on the machine that the script is for.
nft -f /etc/nftables.conf
ip tuntap add dev tap0 mode tap
iptables -t mangle -A PREROUTING -p tcp -j TPROXY --on-port 50080 --tproxy-mark 1
ipset create vips hash:ip
iptables -t mangle -A FORWARD -m set --match-set vips src -j DSCP --set-dscp-class EF
iptables -t mangle -A FORWARD -p tcp -j TCPOPTSTRIP --strip-options timestamp
tc qdisc replace dev eth0 root cake bandwidth 20mbit diffserv4
