# a cycle that ends early
# expect: PS297 3
tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 base-time 1000 cycle-time 500000 sched-entry S 1 500000 sched-entry S 3 500000 clockid CLOCK_TAI
