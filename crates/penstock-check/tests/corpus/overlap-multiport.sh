#!/bin/sh
# expect: PS208 5
M="iptables -t mangle -A FORWARD -o eth0"
$M -p tcp --dport 8443 -j MARK --set-mark 1
$M -p tcp -m multiport --dports 80,443,8000:9000 -j MARK --set-mark 2
tc qdisc replace dev eth0 root handle 1: htb default 3
tc class replace dev eth0 parent 1: classid 1:9 htb rate 9mbit
for c in 1 2 3; do tc class replace dev eth0 parent 1:9 classid 1:$c htb rate 3mbit ceil 9mbit; done
for c in 1 2; do tc filter replace dev eth0 parent 1: protocol ip prio 1 handle $c fw flowid 1:$c; done
