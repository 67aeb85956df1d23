#!/bin/bash
# an ifb without a feeder
# expect: PS230 6
modprobe ifb
ip link set ifb0 up
tc qdisc replace dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:10 htb rate 5mbit
