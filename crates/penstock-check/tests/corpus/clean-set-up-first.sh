#!/bin/bash
DEV=br0
IP=${2:-10.0.3.15}
setup() {
    tc qdisc replace dev $DEV root handle 1: htb default 10
    tc class replace dev $DEV parent 1: classid 1:10 htb rate 90mbit
    tc class replace dev $DEV parent 1: classid 1:20 htb rate 5mbit
    tc filter add dev $DEV parent 1: protocol ip prio 4 u32 match ip dst 10.0.3.2/32 flowid 1:20
}
case "$1" in
  setup) setup ;;
  on) tc filter add dev $DEV parent 1: protocol ip prio 5 u32 match ip dst $IP/32 flowid 1:20 ;;
esac
