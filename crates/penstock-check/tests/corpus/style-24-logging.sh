#!/bin/bash
# expect: PS147 11
# expect: PS105 10
LOG=/var/log/shaper.log
tc() {
    echo "$(date +%T) tc $*" >> "$LOG"
    command tc "$@"
}
start() {
    tc qdisc replace dev eth0 root handle 1: htb default 2; tc class replace dev eth0 parent 1: classid 1:2 htb rate 12mbit ceil 20mbit
    tc qdisc replace dev eth0 parent 1:2 sfq perturb 1
}
case ${1:-start} in start) start ;; stop) tc qdisc del dev eth0 root 2>/dev/null ;; esac
