#!/usr/bin/env bash
# options name the card and the rates; without them it tells how it is called
usage() { echo "usage: $0 -i CARD -u KBIT" >&2; exit 64; }
IFACE=""
while getopts "i:u:h" opt; do
  case $opt in
    i) IFACE=$OPTARG ;;
    u) UP=$OPTARG ;;
    *) usage ;;
  esac
done
[ -z "$IFACE" ] && usage
[ -z "$UP" ] && usage
tc qdisc del dev "$IFACE" root 2>/dev/null
tc qdisc add dev "$IFACE" root handle 1: htb default 20
tc class add dev "$IFACE" parent 1: classid 1:1 htb rate "${UP}kbit" prio 5
tc class add dev "$IFACE" parent 1:1 classid 1:20 htb rate "$((20 * UP / 100))kbit" ceil "${UP}kbit"
