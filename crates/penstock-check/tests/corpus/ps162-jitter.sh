#!/bin/sh
tc qdisc replace dev eth0 root netem delay 100ms 20
tc qdisc replace dev eth1 root fq_codel target 5 interval 100
tc qdisc replace dev eth2 root cake bandwidth 10mbit rtt 50
# expect: PS162 2
# expect: PS162 3
# expect: PS162 3
# expect: PS162 4
