#!/bin/bash
# flowid 1:1 on a qdisc called 2:
# expect: PS170 14
modprobe ifb numifbs=2
ip link set dev ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 2: htb default 20
tc class add dev ifb0 parent 2: classid 2:1 htb rate 20mbit
tc class add dev ifb0 parent 2:1 classid 2:10 htb rate 5mbit ceil 20mbit
tc class add dev ifb0 parent 2:1 classid 2:20 htb rate 15mbit ceil 20mbit
tc filter add dev ifb0 protocol ip parent 2: prio 1 u32 match ip protocol 1 0xff flowid 1:10
# expect: PS271 9
