#!/bin/sh
# two namespaces and a wire between them
set -e
ip netns add a
ip netns add b
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.0.0.1/24 dev va
ip -n b addr add 10.0.0.2/24 dev vb
ip -n a link set va up
ip -n b link set vb up
ip netns exec a tc qdisc add dev va root handle 1: htb default 30
ip netns exec a tc class add dev va parent 1: classid 1:10 htb rate 1mbit
ip netns exec a tc filter add dev va parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.2 flowid 1:10
tc -n b qdisc add dev vb root netem delay 100ms rate 10gbit
ip netns exec b tc qdisc add dev va root pfifo
# expect: PS107 11
# expect: PS160 14
# expect: PS002 15
