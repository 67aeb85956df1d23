#!/bin/sh
# expect: PS348 9
start() { tc qdisc add dev eth0 root handle 1: tbf rate 20mbit burst 32kb latency 50ms; }
stop() { tc qdisc del dev eth0 root; }
case "$1" in
    start) start ;;
    stop) stop ;;
    # start alone
    restart) start ;;
esac
