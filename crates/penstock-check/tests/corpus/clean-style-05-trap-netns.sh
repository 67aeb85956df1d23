#!/usr/bin/env bash
# Two namespaces with a slow line between them for as long as a test runs.
set -Eeuo pipefail
readonly LEFT=lab-left RIGHT=lab-right
cleanup() {
    local status=$?
    ip netns del "$LEFT" 2>/dev/null || true
    ip netns del "$RIGHT" 2>/dev/null || true
    exit "$status"
}
trap cleanup EXIT INT TERM

ip netns add "$LEFT"
ip netns add "$RIGHT"
ip link add veth-l type veth peer name veth-r
ip link set veth-l netns "$LEFT"
ip link set veth-r netns "$RIGHT"
ip -n "$LEFT" addr add 10.99.0.1/24 dev veth-l
ip -n "$RIGHT" addr add 10.99.0.2/24 dev veth-r
ip -n "$LEFT" link set veth-l up
ip -n "$RIGHT" link set veth-r up
ip netns exec "$LEFT" tc qdisc add dev veth-l root netem delay 40ms 5ms distribution normal rate 20mbit limit 2000
ip netns exec "$RIGHT" tc qdisc add dev veth-r root netem delay 40ms 5ms distribution normal rate 20mbit limit 2000
ip netns exec "$LEFT" ping -c 3 10.99.0.2
