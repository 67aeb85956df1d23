#!/bin/bash
# an address without its prefix reaches nobody
# expect: PS004 7
ip link add veth0 type veth peer name veth1
ip addr add 10.0.0.1 dev veth0
ip link set veth0 up
ip route add default via 10.0.0.2
tc qdisc add dev veth0 root netem delay 10ms
