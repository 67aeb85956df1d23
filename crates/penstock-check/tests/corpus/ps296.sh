# decimal masks
# expect: PS296 3
tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 4 map 0 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 base-time 1000 sched-entry S 1 300000 sched-entry S 8 500000 clockid CLOCK_TAI
