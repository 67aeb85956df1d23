#!/bin/bash
# expect: PS002 5
# expect: PS002 9
NIC=enp1s0
tc qdisc replace dev $NIC parent root handle 100 mqprio num_tc 3 \
    map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 \
    queues 1@0 1@0 2@2 hw 0
NIC2=enp2s0
tc qdisc replace dev $NIC2 parent root handle 100 mqprio num_tc 3 \
    map 2 2 1 3 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 hw 0
