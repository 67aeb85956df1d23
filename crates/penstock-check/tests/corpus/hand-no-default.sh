#!/bin/bash
# http://forum: limit my two tenants
IFACE=eth0
tc qdisc del dev $IFACE root 2> /dev/null
tc qdisc add dev $IFACE root handle 1: htb
tc class add dev $IFACE parent 1: classid 1:1 htb rate 50mbit
i=10
for ip in 10.10.0.2 10.10.0.3; do
    tc class add dev $IFACE parent 1:1 classid 1:$i htb rate 5mbit ceil 10mbit
    tc qdisc add dev $IFACE parent 1:$i handle $i: fq_codel
    tc filter add dev $IFACE protocol ip parent 1:0 prio 1 u32 match ip dst $ip flowid 1:$i
    ((i++))
done
# expect: PS106 5
