#!/bin/bash
# expect: PS250 9
# expect: PS346 14
modprobe ifb numifbs=1; ip link set ifb0 up
DEV=eth0
case "$1" in
start)
    tc qdisc add dev $DEV root handle 1: cake bandwidth 20mbit
    tc qdisc add dev $DEV handle ffff: ingress
    tc filter add dev $DEV parent ffff: protocol all matchall action mirred egress redirect dev ifb0
    tc qdisc replace dev ifb0 root cake bandwidth 100mbit ingress
    ;;
stop)
    tc qdisc del dev $DEV root
    ;;
esac
