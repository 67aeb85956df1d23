#!/bin/sh
# What ip cannot read, whatever the machine has; and what hangs on the machine.
# expect: PS004 7
# expect: PS004 8
# expect: PS004 9
# expect: PS004 10
ip link set dev eth0 mtu abc
ip link set eth0 upp
ip addr add 10.0.0.300/24 dev eth0
ip link set dev eth0 mtu 20
ip route add 10.9.0.0/16 via 10.0.0.1 table isp1
ip route add default via 192.168.1.1 dev eth0
ip nexthop add id 1 via 192.168.1.1 dev eth0
ip tuntap add dev tun0 mode tun user openvpn
ip link add geneve0 type geneve id 1 remote 10.0.0.2
ip rule add fwmark 1 lookup isp1
