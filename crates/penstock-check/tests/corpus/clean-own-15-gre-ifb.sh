#!/bin/sh
modprobe ifb numifbs=1
ip link set dev ifb0 up
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action connmark action mirred egress redirect dev ifb0
tc qdisc del dev ifb0 root 2>/dev/null
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:1 htb rate 50mbit
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 50mbit
tc qdisc add dev ifb0 parent 1:20 fq_codel
