#!/bin/bash
#  tc uses the following units: kbps mbps kbit mbit bps
TC=/sbin/tc
IF=eth0		    # Interface
DNLD=10mbit          # DOWNLOAD Limit
UPLD=2mbit          # UPLOAD Limit
IP=216.3.128.12     # Host IP
U32="$TC filter add dev $IF protocol ip parent 1:0 prio 1 u32"
start() {
    $TC qdisc add dev $IF root handle 1: htb default 30
    $TC class add dev $IF parent 1: classid 1:1 htb rate $DNLD
    $TC class add dev $IF parent 1: classid 1:2 htb rate $UPLD
    $TC class add dev $IF parent 1: classid 1:30 htb rate 90mbit
    $TC qdisc add dev $IF parent 1:30 fq_codel
    $TC qdisc add dev $IF parent 1:1 fq_codel
    $TC qdisc add dev $IF parent 1:2 fq_codel target 8ms
    $U32 match ip dst $IP/32 flowid 1:1
    $U32 match ip src $IP/32 flowid 1:2
}
stop() {
    $TC qdisc del dev $IF root
}
restart() {
    stop
    sleep 1
    start
}
show() { $TC -s qdisc ls dev $IF; }
case "$1" in
  start) echo -n "Starting bandwidth shaping: "; start; echo "done" ;;
  stop) stop ;;
  restart) restart ;;
  show) show ;;
  *) pwd=$(pwd); echo "Usage: tc.bash {start|stop|restart|show}" ;;
esac
exit 0
