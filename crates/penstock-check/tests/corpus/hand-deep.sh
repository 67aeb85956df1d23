#!/bin/bash
# nested by department, floor, room, ...
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default 9
p=1:
for i in 1 2 3 4 5 6 7 8 9; do
  tc class add dev $D parent $p classid 1:$i htb rate 10mbit
  p=1:$i
done
tc qdisc add dev $D parent 1:9 fq_codel
# expect: PS002 8
