#!/bin/bash
TC=/sbin/tc
IF=eth0
U32="$TC filter add dev $IF protocol ip parent 1:0 prio 1 u32"
start() {
    $TC qdisc add dev $IF root handle 1: htb default 30
    $TC class add dev $IF parent 1: classid 1:1 htb rate 1mbit
    $TC class add dev $IF parent 1:1 classid 1:10 htb rate 600kbit ceil 1mbit
    $TC class add dev $IF parent 1:2 classid 1:30 htb rate 400kbit ceil 1mbit
    $U32 match ip dst 10.1.1.5/32 flowid 1:10
}
stop() { $TC qdisc del dev $IF root; }
stop 2>/dev/null
start
# expect: PS109 9
