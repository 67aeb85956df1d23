#!/bin/bash
# a hash table by the last byte
DEV=eth1
tc qdisc replace dev $DEV root handle 1: htb default 2
tc class add dev $DEV parent 1: classid 1:1 htb rate 500mbit
tc class add dev $DEV parent 1:1 classid 1:2 htb rate 100mbit ceil 500mbit quantum 30000
tc filter add dev $DEV parent 1:0 prio 5 protocol ip u32
tc filter add dev $DEV parent 1:0 prio 5 handle 2: protocol ip u32 divisor 256
for n in 10 11 12; do
    h=$(printf "%x" $n)
    tc class add dev $DEV parent 1:1 classid 1:1$h htb rate 20mbit ceil 100mbit
    tc filter add dev $DEV protocol ip parent 1:0 prio 5 u32 ht 2:$h: match ip dst 10.0.0.$n flowid 1:1$h
done
tc filter add dev $DEV protocol ip parent 1:0 prio 5 u32 ht 800:: match ip dst 10.0.0.0/24 hashkey mask 0x000000ff at 16 link 2:
