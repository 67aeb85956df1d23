#!/bin/bash
# with: --dev eth0 --rate 1gbit
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root netem delay 200ms 10ms loss 0.1%
# expect: PS160 4
