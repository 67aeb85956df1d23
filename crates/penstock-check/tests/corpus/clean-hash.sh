#!/bin/bash
# hash tables of u32
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default ff
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:ff htb rate 1mbit ceil 10mbit
tc filter add dev eth0 parent 1: prio 5 protocol ip u32
tc filter add dev eth0 parent 1: prio 5 handle 2: protocol ip u32 divisor 256
for i in 1 2 3 4 5; do
  id=$(printf '%x' $((i + 16)))
  tc class add dev eth0 parent 1:1 classid 1:$id htb rate 1mbit ceil 5mbit
  tc filter add dev eth0 parent 1: prio 5 protocol ip u32 ht 2:$(printf '%x' $i): match ip dst 10.0.0.$i flowid 1:$id
done
tc filter add dev eth0 parent 1: prio 5 protocol ip u32 ht 800:: match ip dst 10.0.0.0/24 hashkey mask 0xff at 16 link 2:
