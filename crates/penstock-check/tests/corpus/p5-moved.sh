#!/bin/bash
# expect: PS002 7
# penstock-check: PS002
ip netns add red
ip link add veth0 type veth peer name veth1
ip link set veth1 netns red
tc qdisc add dev veth1 root netem delay 20ms limit 20000
tc qdisc add dev veth0 root netem delay 20ms limit 20000
ip netns exec red tc qdisc add dev veth1 root netem delay 20ms limit 20000
