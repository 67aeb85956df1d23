#!/bin/sh
# limits of small routers and of fast links
tc qdisc replace dev eth0 root fq_codel limit 1001 target 5ms interval 100ms
tc qdisc replace dev eth1 root handle 1: htb default 10
tc class add dev eth1 parent 1: classid 1:10 htb rate 2mbit
tc qdisc add dev eth1 parent 1:10 fq_codel limit 300 target 15ms
ip link set dev eth2 mtu 9000
tc qdisc replace dev eth2 ingress
tc filter replace dev eth2 parent ffff: protocol all prio 1 matchall action police rate 1gbit burst 1m mtu 64kb drop
