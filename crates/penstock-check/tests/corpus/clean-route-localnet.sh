#!/bin/sh
# a local proxy for the web traffic of the LAN
sysctl -w net.ipv4.conf.eth1.route_localnet=1
iptables -t nat -A PREROUTING -i eth1 -p tcp --dport 80 -j DNAT --to-destination 127.0.0.1:3128
