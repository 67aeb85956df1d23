#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root sfq perturb 10 limit 3000 depth 300 flows 512 divisor 1024
