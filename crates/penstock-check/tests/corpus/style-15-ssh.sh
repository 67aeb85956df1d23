#!/bin/bash
# expect: PS001 5
# expect: PS001 6
for host in r1 r2; do
    ssh -o BatchMode=yes "root@$host" tc qdisc replace dev eth0 root cake bandwith 50mbit
    ssh "root@$host" tc qdisc replace dev eth1 root cake bandwidth 20mbit besteffrot
done
