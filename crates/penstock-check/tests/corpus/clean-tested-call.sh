#!/bin/bash
set -e
within() {
    local space="$1"
    shift
    ip netns exec "$space" "$@"
}
ip netns add lab
ip link add left type veth peer name right
ip link set right netns lab
ip link set left up
ip netns exec lab ip link set right up
within lab tc qdisc del dev right root &>/dev/null || true
within lab tc qdisc add dev right root netem delay 20ms limit 5000
