#!/bin/bash
# bands that plain packets do not go to, and one for all but what a filter takes out
tc qdisc replace dev eth0 root handle 1: prio bands 4
tc filter add dev eth0 parent 1: protocol ip prio 10 u32 match ip dst 10.1.2.3 flowid 1:4
tc qdisc add dev eth0 parent 1:4 handle 40: netem delay 300ms
tc qdisc replace dev eth1 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
tc filter add dev eth1 parent 1: protocol ip prio 10 u32 match ip dst 10.1.2.3 flowid 1:2
tc qdisc add dev eth1 parent 1:2 handle 20: netem delay 300ms
tc qdisc replace dev eth2 root handle 1: prio
tc filter add dev eth2 parent 1: protocol ip prio 10 u32 match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:1
tc qdisc add dev eth2 parent 1:2 handle 20: netem delay 300ms
