#!/bin/bash
# the gateway stands behind a tunnel of the script's own
# DHCP gives eth0 its address; the tunnel net is ours
ip tunnel add gre1 mode gre local 198.51.100.7 remote 203.0.113.9 ttl 64
ip addr add 10.99.0.1/30 dev gre1
ip link set gre1 up
ip route add 10.50.0.0/16 via 10.99.0.2
ip route add 10.60.0.0/16 dev gre1
tc qdisc replace dev gre1 root tbf rate 20mbit burst 64kb latency 50ms
