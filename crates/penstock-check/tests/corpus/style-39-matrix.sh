#!/bin/bash
# expect: PS281 7
# expect: PS160 9
DEV=eth0
for l in 0.1 1; do
    tc qdisc del dev "$DEV" root 2>/dev/null
    tc qdisc add dev "$DEV" root netem loss "$l" limit 10000
    tc qdisc del dev eth1 root 2>/dev/null
    tc qdisc add dev eth1 root netem delay 200ms rate 1gbit
    iperf3 -c 198.51.100.9 -t 10
done
