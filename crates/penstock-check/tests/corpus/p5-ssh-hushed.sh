#!/bin/bash
# expect: PS120 6
# penstock-check: PS120
for h in node1 node2; do
    ssh root@"$h" "tc qdisc show dev eno1 >/dev/null 2>&1 || echo none"
    ssh root@"$h" "tc qdisc del dev eno1 root 2>/dev/null; tc qdisc add dev eno1 root tbf rate 800mbit burst 1600 latency 20ms"
done
