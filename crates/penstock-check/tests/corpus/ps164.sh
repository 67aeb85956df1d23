#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 500mbit
tc qdisc add dev eth0 parent 1:10 fq_codel limit 20
# expect: PS164 4
# expect: PS250 2
