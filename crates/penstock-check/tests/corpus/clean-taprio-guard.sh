#!/bin/bash
tc qdisc replace dev eth1 parent root handle 100 taprio num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 \
  queues 1@0 1@1 2@2 base-time 1000000000 sched-entry S 01 300000 sched-entry S 00 100000 \
  sched-entry S 06 600000 clockid CLOCK_TAI
