#!/bin/bash
# expect: PS117 7
DEV=eth0
trap 'tc qdisc del dev $DEV root' EXIT
tc qdisc replace dev $DEV root netem delay 100ms 10ms limit 10000
iperf3 -c 10.0.0.2 -t 30
tc qdisc change dev $DEV root netem loss 1%
iperf3 -c 10.0.0.2 -t 30
