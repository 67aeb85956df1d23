#!/bin/bash
# a kind of device that is not simulated is there all the same
# wireguard policy
ip link add wg0 type wireguard
ip addr add 10.7.0.2/24 dev wg0
wg setconf wg0 /etc/wireguard/wg0.conf
wg set wg0 fwmark 51820
ip link set up dev wg0
ip route add default dev wg0 table 51820
ip rule add not fwmark 51820 table 51820
ip rule add table main suppress_prefixlength 0
tc qdisc replace dev wg0 root cake bandwidth 50mbit
