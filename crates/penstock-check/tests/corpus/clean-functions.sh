#!/bin/sh
# a script with start and stop
DEV=eth0
UP=8000
stop() {
  tc qdisc del dev $DEV root 2>/dev/null
}
start() {
  stop
  tc qdisc add dev $DEV root handle 1: htb default 20
  tc class add dev $DEV parent 1: classid 1:1 htb rate ${UP}kbit
  tc class add dev $DEV parent 1:1 classid 1:10 htb rate $((UP*6/10))kbit ceil ${UP}kbit prio 0
  tc class add dev $DEV parent 1:1 classid 1:20 htb rate $((UP*4/10))kbit ceil ${UP}kbit prio 1
  tc qdisc add dev $DEV parent 1:10 handle 10: sfq perturb 10
  tc qdisc add dev $DEV parent 1:20 handle 20: sfq perturb 10
  tc filter add dev $DEV parent 1: protocol ip prio 10 u32 match ip tos 0x10 0xff flowid 1:10
}
case "$1" in
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
  *) echo "usage: $0 start|stop"; exit 1 ;;
esac
