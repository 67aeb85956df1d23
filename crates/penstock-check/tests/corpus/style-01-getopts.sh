#!/usr/bin/env bash
# expect: PS001 25
# expect: PS114 26
# expect: PS146 28
set -euo pipefail
IFACE=eth0
UP=18
DRY=0
while getopts ":i:u:n" opt; do
    case $opt in
        i) IFACE=$OPTARG ;;
        u) UP=$OPTARG ;;
        n) DRY=1 ;;
        *) echo "usage: ${0##*/} [-i IFACE] [-u MBIT] [-n]" >&2; exit 64 ;;
    esac
done
shift $((OPTIND - 1))
run() {
    echo "+ $*"
    ((DRY)) || "$@"
}

tc qdisc del dev "$IFACE" root 2>/dev/null || true
run tc qdisc add dev "$IFACE" root handle 1: htb default 10
run tc class add dev "$IFACE" parent 1: clasid 1:1 htb rate 18mbit
run tc class add dev "$IFACE" parent 1: classid 1:9 htb rate 2mbps
run tc class add dev "$IFACE" parent 1: classid 1:10 htb rate 16mbit
run tc qdisc add dev "$IFACE" parent 1:10 sfq
