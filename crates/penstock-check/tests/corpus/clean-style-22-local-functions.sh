#!/bin/bash
# A small library of functions and a main.
die() { printf '%s\n' "$*" >&2; exit 1; }

class() {
    local dev=$1 parent=$2 id=$3 rate=$4 ceil=${5:-$4} prio=${6:-1}
    tc class add dev "$dev" parent "$parent" classid "$id" htb rate "$rate" ceil "$ceil" prio "$prio" || die "class $id"
}

leaf() {
    local dev=$1 id=$2
    shift 2
    tc qdisc add dev "$dev" parent "$id" "$@" || die "leaf $id"
}

by_port() {
    local dev=$1 proto=$2 port=$3 id=$4 number
    case $proto in tcp) number=6 ;; udp) number=17 ;; *) die "protocol $proto" ;; esac
    tc filter add dev "$dev" parent 1: protocol ip prio 5 u32 match ip protocol $number 0xff match ip dport "$port" 0xffff flowid "$id"
}

main() {
    local dev=${1:-eth0}
    tc qdisc replace dev "$dev" root handle 1: htb default 20
    class "$dev" 1: 1:1 80mbit
    class "$dev" 1:1 1:10 20mbit 80mbit 0
    class "$dev" 1:1 1:20 60mbit 80mbit 1
    leaf "$dev" 1:10 fq_codel
    leaf "$dev" 1:20 fq_codel limit 5000
    by_port "$dev" udp 3478 1:10
    by_port "$dev" tcp 22 1:10
}

main "$@"
