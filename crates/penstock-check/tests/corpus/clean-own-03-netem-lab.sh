#!/bin/bash
ip netns add a; ip netns add b
ip link add va type veth peer name vb
ip link set va netns a; ip link set vb netns b
ip -n a addr add 10.0.0.1/24 dev va; ip -n b addr add 10.0.0.2/24 dev vb
ip -n a link set va up; ip -n b link set vb up
ip netns exec a tc qdisc add dev va root netem delay 25ms 2ms loss 0.5%
ip netns exec b tc qdisc add dev vb root netem delay 25ms 2ms loss 0.5%
