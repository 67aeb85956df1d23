#!/bin/sh
start() {
  tc qdisc add dev eth0 root handle 1: htb default 10
  tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
}
stop() {
  tc qdisc del dev eth0 root
}
stop 2>/dev/null
start
# the read side goes down
stop
# expect: PS253 7
