#!/bin/bash
# tc is a function that keeps a log.
LOG=/var/log/shaper.log
tc() {
    echo "$(date +%T) tc $*" >> "$LOG"
    command tc "$@"
}
start() {
    tc qdisc replace dev eth0 root handle 1: htb default 2
    tc class replace dev eth0 parent 1: classid 1:2 htb rate 12mbit
    tc qdisc replace dev eth0 parent 1:2 sfq perturb 10
}
stop() { tc qdisc del dev eth0 root 2>/dev/null; }
case ${1:-start} in
    start) start ;;
    stop) stop ;;
    restart) stop; start ;;
    *) echo "usage: $0 start|stop|restart" ;;
esac
