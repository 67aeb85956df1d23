#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
for r in 10 20 30; do
  tc class replace dev eth0 parent 1:1 classid 1:10 htb rate ${r}mbit ceil 100mbit
done
# expect: PS116 5
# expect: PS250 2
