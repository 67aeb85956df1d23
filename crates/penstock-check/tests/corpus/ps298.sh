# a window of 100 us at 100mbit
# with: --rate 100mbit --dev eth0
# expect: PS298 4
tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 base-time 1000 sched-entry S 1 900000 sched-entry S 2 100000 clockid CLOCK_TAI
