#!/bin/bash
# expect: PS336 7
ip addr add 192.0.2.10/24 dev eth0
ip addr add 198.51.100.10/24 dev eth1
ip link set eth0 up; ip link set eth1 up
ip route replace default via 192.0.2.1 dev eth0; ip route replace default via 198.51.100.1 dev eth1 table 200
ip rule add from 10.9.0.0/24 lookup 200 pref 40000
ip rule add from 10.9.1.0/24 lookup 200 pref 1000
ip rule add unreachable pref 40000
tc qdisc replace dev eth1 root cake bandwidth 18mbit nat
