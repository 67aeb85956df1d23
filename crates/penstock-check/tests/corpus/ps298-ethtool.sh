#!/bin/bash
# expect: PS298 7
# 50 us are enough at 1 Gbit/s and are not at 100 Mbit/s
ethtool -s eth2 speed 100 duplex full
tc qdisc replace dev eth2 parent root handle 100 taprio num_tc 2 map 1 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 \
  queues 1@0 1@1 base-time 0 \
  sched-entry S 01 50000 sched-entry S 02 950000 clockid CLOCK_TAI
