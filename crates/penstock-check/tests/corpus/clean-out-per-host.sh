#!/bin/bash
# a class for each host of a /24, hexadecimal minors
LAN=br-lan
tc qdisc del dev $LAN root 2>/dev/null
tc qdisc add dev $LAN root handle 1: htb default fffe
tc class add dev $LAN parent 1: classid 1:1 htb rate 90mbit
tc class add dev $LAN parent 1:1 classid 1:fffe htb rate 10mbit ceil 90mbit
tc qdisc add dev $LAN parent 1:fffe fq_codel
for n in $(seq 100 119); do
    id=$(printf '%x' $((0x100 + n)))
    tc class add dev $LAN parent 1:1 classid 1:$id htb rate 4mbit ceil 20mbit
    tc qdisc add dev $LAN parent 1:$id fq_codel
    tc filter add dev $LAN parent 1: protocol ip prio 1 u32 match ip dst 192.168.1.$n flowid 1:$id
done
