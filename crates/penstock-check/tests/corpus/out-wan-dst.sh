#!/bin/bash
# downloads are looked for on the way out to the internet
# expect: PS222 12
WAN=eth0
iptables -t nat -A POSTROUTING -o $WAN -j MASQUERADE
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 50mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 10mbit ceil 50mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 40mbit ceil 50mbit
# limit the download of the TV
tc filter add dev $WAN protocol ip parent 1: prio 1 u32 match ip dst 192.168.1.60 flowid 1:10
