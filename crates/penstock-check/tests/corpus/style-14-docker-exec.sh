#!/bin/sh
# expect: PS142 6
# expect: PS120 7
for c in node1 node2; do
    docker exec --privileged "$c" tc qdisc del dev eth0 root
    docker exec --privileged "$c" tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 32kb limit 1500
    docker exec --privileged "$c" tc qdisc replace dev eth1 root handle 1: tbf rate 800mbit burst 3kb latency 50ms
done
