#!/bin/bash
# a satellite line between two namespaces
set -euo pipefail
cleanup() { ip netns del left 2>/dev/null || true; ip netns del right 2>/dev/null || true; }
trap cleanup EXIT
cleanup
ip netns add left
ip netns add right
ip link add vl type veth peer name vr
ip link set vl netns left
ip link set vr netns right
ip -n left addr add 10.20.0.1/24 dev vl
ip -n right addr add 10.20.0.2/24 dev vr
ip -n left link set vl up
ip -n right link set vr up
ip netns exec left tc qdisc add dev vl root netem delay 300ms 10ms distribution normal loss 0.5% limit 20000
ip netns exec right tc qdisc add dev vr root netem delay 10ms 300ms distribution normal limit 20000
ip netns exec left ping -c 3 10.20.0.2
# expect: PS280 17
