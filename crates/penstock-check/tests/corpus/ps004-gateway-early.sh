#!/bin/bash
# a route before the address that reaches its gateway
# expect: PS004 5
ip link add br0 type bridge
ip route add 10.5.0.0/16 via 10.4.0.1 dev br0
ip addr add 10.4.0.2/24 dev br0
ip link set br0 up
