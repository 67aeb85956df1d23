#!/usr/bin/env bash
# expect: PS162 14
# expect: PS001 15
set -Eeuo pipefail
cleanup() { ip netns del left 2>/dev/null || true; ip netns del right 2>/dev/null || true; }
trap cleanup EXIT
ip netns add left
ip netns add right
ip link add veth-l type veth peer name veth-r
ip link set veth-l netns left
ip link set veth-r netns right
ip -n left link set veth-l up
ip -n right link set veth-r up
ip netns exec left tc qdisc add dev veth-l root netem delay 40 limit 2000
ip netns exec right tc qdisc add dev veth-r root netem dealy 40ms
