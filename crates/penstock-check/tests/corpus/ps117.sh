#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 2mbit ceil 10mbit
tc class change dev eth0 parent 1:1 classid 1:30 htb rate 3mbit
# expect: PS117 5
# expect: PS250 2
