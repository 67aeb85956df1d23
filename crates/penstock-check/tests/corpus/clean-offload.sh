#!/bin/bash
# Cards may do in hardware what the machine here does in software.
tc qdisc replace dev eth0 parent root handle 100 mqprio num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 hw 1
tc qdisc replace dev eth0 parent 100:1 cbs idleslope 98688 sendslope -901312 hicredit 153 locredit -1389 offload 1
tc qdisc replace dev eth0 parent 100:2 etf clockid CLOCK_TAI delta 500000 offload
tc qdisc replace dev eth1 parent root taprio num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 base-time 1000000000 sched-entry S 04 300000 sched-entry S 03 300000 flags 0x2
tc qdisc replace dev eth2 clsact
tc filter replace dev eth2 ingress protocol ip pref 10 flower skip_sw ip_proto tcp dst_port 80 action drop
