#!/bin/sh
# shares of the card's speed, a multiqueue card, and actions that name no class
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 50%
tc filter add dev eth0 parent 1: protocol ip prio 3 matchall action vlan push id 5 priority 3
tc qdisc replace dev eth1 root handle 1: multiq
tc qdisc del dev eth2 clsact 2>/dev/null
tc qdisc add dev eth2 clsact
tc filter add dev eth2 egress protocol ip prio 1 flower ip_proto udp action sample rate 100 group 5
