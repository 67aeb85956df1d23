#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: netem delay 40ms
tc qdisc add dev eth0 parent 1:1 handle 10: fq_codel
# expect: PS161 3
