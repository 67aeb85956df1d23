#!/bin/sh
# expect: PS251 6
DEV=eth0
start() {
  tc qdisc del dev $DEV root 2>/dev/null
  tc qdisc add dev $DEV root handle 1: htb default 1 2>/dev/null || true
  tc class add dev $DEV parent 1: classid 1:1 htb rate 5mbit
  tc qdisc add dev $DEV clsact 2>/dev/null || true
  tc filter replace dev $DEV ingress protocol ip prio 1 handle 1 flower ip_proto udp action pass
}
stop() { tc qdisc del dev $DEV root 2>/dev/null; tc qdisc del dev $DEV clsact 2>/dev/null; }
case "$1" in start) start;; stop) stop;; restart) stop; start;; esac
