#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio bands 3
tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 50
tc qdisc add dev eth0 parent 1:2 handle 20: cake bandwidth 20mbit
tc qdisc add dev eth0 parent 1:3 handle 30: fq_codel
# expect: PS158 5
