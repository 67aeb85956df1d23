#!/bin/sh
# expect: PS107 5
TC=~builder/src/iproute2/tc/tc
$TC qdisc del dev eth0 root 2>/dev/null
$TC qdisc add dev eth0 root handle 1: htb default 30
$TC class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
