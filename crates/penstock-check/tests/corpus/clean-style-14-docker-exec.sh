#!/bin/sh
set -e
for c in node1 node2 node3; do
    docker exec --privileged "$c" tc qdisc del dev eth0 root 2>/dev/null || true
    docker exec --privileged "$c" tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 32kb latency 50ms
    docker exec --privileged "$c" tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 20ms limit 1000
done
