#!/bin/bash
ROUTERS=(r1.example.net r2.example.net)
for host in "${ROUTERS[@]}"; do
    ssh -o BatchMode=yes "root@$host" tc qdisc replace dev eth0 root cake bandwidth 50mbit besteffort
    ssh "root@$host" "tc -s qdisc show dev eth0"
done
