#!/bin/bash
# both devices of a router in a loop
for d in eth0 eth1; do
  tc qdisc del dev $d root 2>/dev/null
  tc qdisc add dev $d root handle 1: htb default 20
  tc class add dev $d parent 1: classid 1:1 htb rate 10mbit
  tc class add dev $d parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit
  tc class add dev $d parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit
done
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.5 flowid 1:10
tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.5 flowid 1:10
