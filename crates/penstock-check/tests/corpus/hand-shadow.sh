#!/bin/bash
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
for c in 10 20 30; do
  tc class add dev eth0 parent 1:1 classid 1:$c htb rate 3mbit ceil 10mbit
  tc qdisc add dev eth0 parent 1:$c fq_codel
done
tc -b - <<TC
filter add dev eth0 parent 1: protocol ip prio 5 u32 match ip dst 192.168.0.0/16 flowid 1:10
filter add dev eth0 parent 1: protocol ip prio 6 u32 match ip dst 192.168.7.0/24 flowid 1:20
TC
# expect: PS180 11
