#!/bin/bash
# like the Arch wiki's HTB example, numbers that add up
# This line sets a HTB qdisc on the root of eth0, and it specifies that the class 1:30 is used by default.
tc qdisc replace dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 6mbit burst 15k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 3mbit burst 15k
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 2mbit ceil 6mbit burst 15k
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 6mbit burst 15k
tc qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10
tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10
tc qdisc add dev eth0 parent 1:30 handle 30: sfq perturb 10
tc filter add dev eth0 protocol ip parent 1:0 prio 1 handle 1 fw flowid 1:10
tc filter add dev eth0 protocol ip parent 1:0 prio 1 handle 2 fw flowid 1:20
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --sport 80 -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --sport 22 -j MARK --set-mark 2
