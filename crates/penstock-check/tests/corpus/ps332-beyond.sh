#!/bin/sh
# expect: PS332 3
tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 base-time 0 sched-entry S 01 250000 sched-entry S 06 250000 sched-entry S 08 500000 clockid CLOCK_TAI
