#!/bin/sh
# Times that no bridge takes: hello_time is at most 10 s, max_age at least 6 s, and ip counts in hundredths of a second.
# expect: PS004 6
# expect: PS004 9
ip link add br0 type bridge stp_state 1 priority 4096
ip link set br0 type bridge hello_time 5000
ip link set br0 type bridge hello_time 200
ip link set eth0 master br0
brctl setmaxage br0 5
ip link set eth0 up
ip link set br0 up
tc qdisc replace dev eth0 root fq_codel
