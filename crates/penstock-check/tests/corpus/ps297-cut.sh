#!/bin/bash
# the last entry is cut short by the cycle
# expect: PS297 4
tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 base-time 0 cycle-time 400000 sched-entry S 01 300000 sched-entry S 02 300000 clockid CLOCK_TAI
