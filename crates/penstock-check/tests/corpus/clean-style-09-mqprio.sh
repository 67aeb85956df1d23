#!/bin/bash
# Three traffic classes on the hardware queues of an Intel card; the first paces by time.
NIC=enp1s0
set -e
ethtool -L $NIC combined 4
ethtool -K $NIC tso off gso off
tc qdisc replace dev $NIC parent root handle 100 mqprio num_tc 3 \
    map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 \
    queues 1@0 1@1 2@2 hw 0
tc qdisc replace dev $NIC parent 100:1 etf clockid CLOCK_TAI delta 500000
tc qdisc replace dev $NIC parent 100:2 handle 102: fq_codel
