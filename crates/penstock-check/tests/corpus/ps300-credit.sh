#!/bin/bash
# a least credit above zero
# expect: PS300 5
tc qdisc replace dev eth0 parent root handle 100 mqprio num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 hw 0
tc qdisc replace dev eth0 parent 100:1 cbs idleslope 98688 sendslope -901312 hicredit 153 locredit 1389 offload 0
