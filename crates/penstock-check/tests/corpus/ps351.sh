#!/bin/sh -e
# expect: PS351 6
ip link set eth0 txqueuelen 500

exit 0
tc qdisc replace dev eth0 root handle 1: prio bands 3
tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 50
