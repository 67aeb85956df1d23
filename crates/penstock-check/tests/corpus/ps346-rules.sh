#!/bin/sh
# expect: PS346 15
DEV=eth0
start() {
    tc qdisc add dev $DEV root handle 1: htb default 20
    tc class add dev $DEV parent 1: classid 1:1 htb rate 100mbit
    tc class add dev $DEV parent 1:1 classid 1:10 htb rate 40mbit ceil 100mbit
    tc class add dev $DEV parent 1:1 classid 1:20 htb rate 60mbit ceil 100mbit
    iptables -t mangle -A POSTROUTING -o $DEV -p tcp --sport 443 -j MARK --set-mark 10
    iptables -t mangle -A POSTROUTING -o $DEV -p udp --dport 53 -j MARK --set-mark 10
    tc filter add dev $DEV parent 1: protocol ip prio 1 handle 10 fw flowid 1:10
}
# one of the rules of netfilter stays
stop() {
    iptables -t mangle -D POSTROUTING -o $DEV -p udp --dport 53 -j MARK --set-mark 10
    tc qdisc del dev $DEV root
}
case "$1" in
    start) start ;;
    stop) stop ;;
    *) exit 2 ;;
esac
