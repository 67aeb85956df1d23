#!/bin/sh
# expect: PS109 5
tc qdisc del dev eth0 root 2>/dev/null
/usr/local/sbin/tc qdisc add dev eth0 root handle 1: htb default 10
/usr/local/sbin/tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit
