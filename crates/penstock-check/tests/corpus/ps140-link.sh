#!/bin/bash
# a thousand packets on a slow link
# with: --rate 2mbit
# with: --dev eth0
# expect: PS140 7
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root pfifo limit 1000
