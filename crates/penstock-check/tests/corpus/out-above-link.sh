#!/bin/bash
# shaped above what the modem carries
# with: --dev eth0 --rate 20mbit
# expect: PS104 7
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:1 htb rate 25mbit ceil 25mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 20mbit ceil 25mbit
tc qdisc add dev eth0 parent 1:10 fq_codel
