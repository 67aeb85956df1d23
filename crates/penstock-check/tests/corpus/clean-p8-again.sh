#!/bin/bash
# everything that is made is taken away, and a restart is a stop and a start
DEV=eth0
start() {
    ip link add ifb0 type ifb
    ip link set ifb0 up
    tc qdisc add dev $DEV root handle 1: cake bandwidth 20mbit
    tc qdisc add dev $DEV handle ffff: ingress
    tc filter add dev $DEV parent ffff: protocol all matchall action mirred egress redirect dev ifb0
    tc qdisc add dev ifb0 root cake bandwidth 100mbit ingress
    iptables -t mangle -A POSTROUTING -o $DEV -p udp --dport 53 -j DSCP --set-dscp-class CS5
}
stop() {
    iptables -t mangle -D POSTROUTING -o $DEV -p udp --dport 53 -j DSCP --set-dscp-class CS5
    tc qdisc del dev $DEV root
    tc qdisc del dev $DEV ingress
    ip link del ifb0
}
case "$1" in
    start) start ;;
    stop) stop ;;
    restart|reload) stop; start ;;
    *) exit 1 ;;
esac
