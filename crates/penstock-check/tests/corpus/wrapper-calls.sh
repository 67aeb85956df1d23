#!/bin/sh
ipt() { iptables -w "$@"; }
mk() {
  tc class add dev eth0 parent 1:1 classid $1 htb rate $2 ceil $3
}
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
mk 1:10 5mbit 20mbit
mk 1:20 4mbit 10mbit
ipt -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 7
ipt -t mangle -A POSTROUTING -o eth0 -p tcp --dprot 23 -j MARK --set-mark 8
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 8 fw flowid 1:10
# expect: PS003 11
# expect: PS102 8
# expect: PS202 10
