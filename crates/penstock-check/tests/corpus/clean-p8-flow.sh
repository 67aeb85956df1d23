#!/bin/sh
# flows that a filter tells apart are not mixed by the hash
tc qdisc replace dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc qdisc add dev eth0 parent 1:1 handle 10: sfq divisor 512
tc filter add dev eth0 parent 10: protocol all prio 1 handle 1 flow hash keys src divisor 512
