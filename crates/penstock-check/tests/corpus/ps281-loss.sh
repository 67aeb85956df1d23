#!/bin/bash
# expect: PS281 4
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root netem delay 20ms loss 0.1
