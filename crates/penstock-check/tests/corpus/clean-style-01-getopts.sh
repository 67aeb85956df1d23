#!/usr/bin/env bash
# Shapes one device: shape.sh -i eth0 -u 18mbit [-d 90mbit] [-n]
set -euo pipefail

IFACE=eth0
UP=18mbit
DOWN=90mbit
DRY=0

usage() { echo "usage: ${0##*/} [-i IFACE] [-u RATE] [-d RATE] [-n]" >&2; exit 64; }

while getopts ":i:u:d:nh" opt; do
    case $opt in
        i) IFACE=$OPTARG ;;
        u) UP=$OPTARG ;;
        d) DOWN=$OPTARG ;;
        n) DRY=1 ;;
        h) usage ;;
        :) echo "-$OPTARG needs a value" >&2; usage ;;
        \?) usage ;;
    esac
done
shift $((OPTIND - 1))

run() {
    echo "+ $*"
    if ((DRY)); then return 0; fi
    "$@"
}

IFB="ifb-${IFACE}"
ip link show "$IFB" >/dev/null 2>&1 || run ip link add "$IFB" type ifb
run ip link set "$IFB" up
run tc qdisc replace dev "$IFACE" root cake bandwidth "$UP" diffserv4 nat egress
tc qdisc del dev "$IFACE" ingress 2>/dev/null || true
run tc qdisc add dev "$IFACE" handle ffff: ingress
run tc filter add dev "$IFACE" parent ffff: protocol all prio 10 matchall action mirred egress redirect dev "$IFB"
run tc qdisc replace dev "$IFB" root cake bandwidth "$DOWN" diffserv4 nat wash ingress
