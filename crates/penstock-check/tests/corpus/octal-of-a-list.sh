#!/bin/bash
# expect: PS005 7
tc qdisc replace dev eth0 root handle 1: htb default 1
tc class replace dev eth0 parent 1: classid 1:9 htb rate 500mbit
tc class replace dev eth0 parent 1:9 classid 1:1 htb rate 50mbit ceil 500mbit
for i in 07 08 09; do
    id=$((i+10))
    tc class add dev eth0 parent 1:9 classid 1:$id htb rate 50mbit ceil 500mbit
    tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.1.$id.0/24 flowid 1:$id
done
