#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default ffff
tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit
tc class add dev eth0 parent 1:1 classid 1:ffff htb rate 10mbit ceil 1gbit quantum 15140
tc filter add dev eth0 parent 1: protocol ip prio 5 handle 2: u32 divisor 256
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 800:: match ip dst 10.0.0.0/24 hashkey mask 0x000000ff at 16 link 2:
for i in $(seq 1 20); do h=$(printf %x $i)
tc class add dev eth0 parent 1:1 classid 1:10$h htb rate 10mbit ceil 100mbit
tc filter add dev eth0 parent 1: protocol ip prio 5 u32 ht 2:$h: match ip dst 10.0.0.$i flowid 1:10$h
done
