#!/bin/bash
# 200 ms at a gigabit need more than 1000 packets
# with: --rate 1gbit
# expect: PS160 7
IF=eth1
tc qdisc del dev $IF root 2>/dev/null
tc qdisc add dev $IF root netem delay 200ms 10ms loss 0.1%
