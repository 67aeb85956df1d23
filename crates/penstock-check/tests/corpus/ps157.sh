#!/bin/bash
# target as long as interval
# expect: PS157 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq_codel target 80ms interval 100ms
