#!/bin/sh
# one address is slowed down, the other bands are only fair
tc qdisc replace dev eth0 root handle 1: prio bands 4
tc qdisc replace dev eth0 parent 1:1 handle 10: sfq perturb 10
tc qdisc replace dev eth0 parent 1:2 handle 20: sfq perturb 10
tc qdisc replace dev eth0 parent 1:4 handle 40: netem delay 500ms 20ms
tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip dst 172.17.0.3/32 flowid 1:4
