#!/bin/bash
# the namespaces go at the end, and what was wrong in them is said all the same
trap 'ip netns del a; ip netns del b' EXIT
ip netns add a
ip netns add b
ip link add va type veth peer name vb
ip link set va netns a
ip link set vb netns b
ip -n a link set va up
ip -n b link set vb up
tc -n a qdisc add dev va root netem delay 5ms 20ms
tc -n b qdisc add dev vb root netem delay 400
# expect: PS280 11
# expect: PS162 12
