#!/bin/bash
D=eth0
tc qdisc del dev $D root 2>/dev/null
tc qdisc add dev $D root handle 1: htb default 20
tc class add dev $D parent 1: classid 1:1 htb rate 10mbit
tc class add dev $D parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc qdisc add dev $D parent 1:20 fq_codel
tc class add dev $D parent 1:1 classid 1:12345 htb rate 5mbit ceil 10mbit
# expect: PS001 8
