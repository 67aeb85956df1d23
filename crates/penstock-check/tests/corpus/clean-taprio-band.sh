#!/bin/bash
# the third class is a guard band of one frame
tc qdisc replace dev eth1 parent root handle 100 taprio num_tc 3 map 1 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 \
  queues 1@0 1@1 1@2 base-time 0 \
  sched-entry S 01 246720 sched-entry S 02 493440 sched-entry S 04 123360 clockid CLOCK_TAI
