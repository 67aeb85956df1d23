#!/bin/sh
# usage: gaming.sh start|stop
DEV=eth0
UP=10
start() {
  stop
  tc qdisc add dev $DEV root handle 1: htb default 12
  tc class add dev $DEV parent 1: classid 1:1 htb rate ${UP}mbit ceil ${UP}mbit
  tc class add dev $DEV parent 1:1 classid 1:11 htb rate $((UP * 300))kbit ceil ${UP}mbit prio 1
  tc class add dev $DEV parent 1:1 classid 1:12 htb rate $((UP * 700))kbit ceil ${UP}mbit prio 2
  tc qdisc add dev $DEV parent 1:11 handle 11: fq_codel quantum 300
  tc qdisc add dev eth1 parent 1:12 handle 12: fq_codel quantum 1514
  for p in 27015 27016 3074; do
    tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport $p 0xffff flowid 1:11
  done
}
stop() {
  tc qdisc del dev $DEV root >/dev/null 2>&1
  return 0
}
case "${1:-}" in
  start|restart) start ;;
  stop) stop ;;
  *) echo "usage: $0 start|stop" >&2; exit 64 ;;
esac
# expect: PS002 12
