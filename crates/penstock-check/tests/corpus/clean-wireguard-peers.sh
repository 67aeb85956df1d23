#!/bin/sh
# A class for each peer that is there: who they are nobody knows here.
IFACE=wg0
wg show $IFACE >/dev/null || exit 1
tc qdisc del dev $IFACE root 2>/dev/null
tc qdisc add dev $IFACE root handle 1: htb default 2
tc class add dev $IFACE parent 1: classid 1:1 htb rate 50mbit ceil 50mbit
tc class add dev $IFACE parent 1:1 classid 1:2 htb rate 1mbit ceil 10mbit
n=10
for peer in $(wg show $IFACE peers); do
  ip=$(wg show $IFACE allowed-ips | grep "$peer" | awk '{print $2}')
  tc class add dev $IFACE parent 1:1 classid 1:$n htb rate 5mbit ceil 20mbit
  tc filter add dev $IFACE parent 1: protocol ip prio 1 u32 match ip dst $ip flowid 1:$n
  n=$((n + 1))
done
