#!/bin/sh
# expect: PS226 8
M="iptables -w -t mangle"
$M -N ct
$M -N qos
$M -A ct -m mark --mark 0/0xff -p tcp --dport 22 -j MARK --set-xmark 0x11/0xff
$M -A ct -j CONNMARK --save-mark --mask 0xff
$M -A qos -j CONNMARK --restore-mark --mask 0x0f
$M -A qos -m mark --mark 0/0x0f -j ct
$M -A FORWARD -o ppp0 -j qos
tc qdisc replace dev ppp0 root handle 1: htb default 30
tc class replace dev ppp0 parent 1: classid 1:1 htb rate 900kbit
tc class replace dev ppp0 parent 1:1 classid 1:10 htb rate 300kbit ceil 900kbit prio 1
tc class replace dev ppp0 parent 1:1 classid 1:30 htb rate 600kbit ceil 900kbit prio 2
tc filter replace dev ppp0 parent 1: prio 1 protocol ip handle 0x11/0xff fw flowid 1:10
