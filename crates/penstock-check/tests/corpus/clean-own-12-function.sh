#!/bin/bash
DEV=${1:-eth0}
start() {
  tc qdisc add dev "$DEV" root handle 1: htb default 20
  tc class add dev "$DEV" parent 1: classid 1:1 htb rate 30mbit
  tc class add dev "$DEV" parent 1:1 classid 1:20 htb rate 30mbit
  tc qdisc add dev "$DEV" parent 1:20 fq_codel
}
stop() { tc qdisc del dev "$DEV" root 2>/dev/null; }
case "$2" in stop) stop;; *) stop; start;; esac
