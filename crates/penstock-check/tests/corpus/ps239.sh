#!/bin/bash
# one port of two
# expect: PS239 7
ip link add br0 type bridge
ip link set eth0 master br0
ip link set eth1 master br0
tc qdisc replace dev eth0 root tbf rate 10mbit burst 20k latency 50ms
