#!/bin/bash
modprobe ifb
ip link set ifb0 up
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:10 htb rate 20mbit
tc qdisc add dev ifb0 parent 1:10 fq_codel
# expect: PS230 5
