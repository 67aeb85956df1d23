#!/bin/sh
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc filter add dev eth0 parent 1: protocol all prio 1 handle 6 fw flowid 1:10
for t in iptables ip6tables; do
  $t -t mangle -N QOS
  $t -t mangle -A PREROUTING -j CONNMARK --restore-mark
  $t -t mangle -A PREROUTING -m mark ! --mark 0 -j ACCEPT
  $t -t mangle -A FORWARD -o eth0 -m mark --mark 0 -j QOS
  $t -t mangle -A QOS -p tcp --dport 22 -m conntrack --ctstate NEW -j MARK --set-mark 6
  $t -t mangle -A QOS -j CONNMARK --save-mark
done
