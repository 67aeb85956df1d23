#!/bin/bash
# classes made in hexadecimal, filters written in decimal
# expect: PS170 11
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default fff
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:fff htb rate 10mbit ceil 100mbit
for i in 16 17; do
  h=$(printf %x $i)
  tc class add dev eth0 parent 1:1 classid 1:$h htb rate 2mbit ceil 4mbit
  tc filter add dev eth0 parent 1: protocol ip prio 5 u32 match ip dst 10.0.0.$i flowid 1:$i
done
