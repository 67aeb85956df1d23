#!/bin/bash
# one port of the bridge
# expect: PS239 9
ip link add br0 type bridge
ip link set eth1 master br0
ip link set eth2 master br0
ip link set br0 up
tc qdisc del dev eth1 root 2>/dev/null
tc qdisc add dev eth1 root tbf rate 10mbit burst 32kbit latency 50ms
