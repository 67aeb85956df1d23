#!/bin/bash
# expect: PS001 9
# penstock-check: PS001
ipset create -exist customers hash:net
ipset add customers 10.1.0.0/24
tc qdisc replace dev eth1 root handle 1: htb default 20
tc class replace dev eth1 parent 1: classid 1:10 htb rate 150mbit
tc class replace dev eth1 parent 1: classid 1:20 htb rate 50mbit
tc filter add dev eth1 parent 1: protocol ip prio 1 basic match 'ipset(customer dst)' classid 1:10
tc filter add dev eth1 parent 1: protocol ip prio 2 basic match 'ipset(customers dst)' classid 1:10
