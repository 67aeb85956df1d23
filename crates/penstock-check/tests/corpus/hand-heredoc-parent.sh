#!/bin/bash
IF=eth0
tc qdisc del dev $IF root 2>/dev/null
tc -b <<EOF
qdisc add dev $IF root handle 1: htb default 12
class add dev $IF parent 1: classid 1:1 htb rate 100mbit
class add dev $IF parent 1:10 classid 1:11 htb rate 40mbit ceil 100mbit
class add dev $IF parent 1:1 classid 1:12 htb rate 60mbit ceil 100mbit
EOF
# expect: PS001 4
