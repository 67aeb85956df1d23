# schedules as they are meant
tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 3 map 0 1 2 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 base-time 1000 sched-entry S 01 300000 sched-entry S 02 300000 sched-entry S 04 400000 clockid CLOCK_TAI
tc qdisc add dev eth1 root etf clockid CLOCK_TAI delta 300000
tc qdisc add dev eth2 root cbs idleslope 20000 sendslope -980000 hicredit 30 locredit -1470
