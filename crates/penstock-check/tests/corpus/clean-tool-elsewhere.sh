#!/bin/sh
# A tc built by hand: in /usr/local, in somebody's home, beside the script.
TC=/usr/local/sbin/tc
NEWTC=~builder/src/iproute2/tc/tc
$TC qdisc del dev eth0 root 2>/dev/null
$TC qdisc add dev eth0 root handle 1: htb default 20
$TC class add dev eth0 parent 1: classid 1:1 htb rate 20mbit
$NEWTC class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit
./tc class add dev eth0 parent 1:1 classid 1:20 htb rate 15mbit ceil 20mbit
/opt/iproute2/sbin/tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 198.51.100.0/24 flowid 1:10
