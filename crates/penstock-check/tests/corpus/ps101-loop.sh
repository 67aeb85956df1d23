#!/bin/bash
# a loop with one class too many
# expect: PS101 7
tc qdisc replace dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:9 htb rate 4mbit
for i in 1 2 3; do
  tc class add dev eth0 parent 1:9 classid 1:$i htb rate 2mbit ceil 4mbit
done
for i in 1 2 3; do
  tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.$i flowid 1:$i
done
