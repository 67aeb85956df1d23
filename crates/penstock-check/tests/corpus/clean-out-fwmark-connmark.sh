#!/bin/bash
# marks kept with connections
WAN=eth0
ipt() { iptables -t mangle "$@"; }
ipt -F
ipt -A PREROUTING -j CONNMARK --restore-mark
ipt -A PREROUTING -m mark ! --mark 0 -j ACCEPT
ipt -A PREROUTING -p tcp -m multiport --dports 22,53 -j MARK --set-mark 1
ipt -A PREROUTING -p udp -m multiport --dports 53,123 -j MARK --set-mark 1
ipt -A PREROUTING -p tcp -m multiport --dports 80,443 -j MARK --set-mark 2
ipt -A PREROUTING -m mark --mark 0 -j MARK --set-mark 3
ipt -A PREROUTING -j CONNMARK --save-mark
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 30
tc class add dev $WAN parent 1: classid 1:1 htb rate 19mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 4mbit ceil 19mbit prio 0
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 10mbit ceil 19mbit prio 1
tc class add dev $WAN parent 1:1 classid 1:30 htb rate 5mbit ceil 19mbit prio 2
for m in 1 2 3; do
    tc qdisc add dev $WAN parent 1:${m}0 handle ${m}0: fq_codel
    tc filter add dev $WAN parent 1: protocol ip prio $m handle $m fw flowid 1:${m}0
done
