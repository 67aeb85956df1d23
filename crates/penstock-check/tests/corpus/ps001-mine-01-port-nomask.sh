#!/usr/bin/env bash
# Uplink of the house: voice, work, rest.
set -u
readonly WAN=ppp0
readonly UP=9000

say() { printf '%s\n' "$*" >&2; }
cls() {   # id prio rate ceil
  tc class replace dev "$WAN" parent 1:1 classid "1:$1" htb rate "${3}kbit" ceil "${4}kbit" prio "$2"
  tc qdisc replace dev "$WAN" parent "1:$1" handle "$1:" fq_codel limit 600 noecn
}
tc qdisc del dev "$WAN" root 2>/dev/null || :
tc qdisc add dev "$WAN" root handle 1: htb default 30
tc class add dev "$WAN" parent 1: classid 1:1 htb rate "${UP}kbit" ceil "${UP}kbit"
cls 10 0 1500 "$UP"
cls 20 1 4500 "$UP"
cls 30 2 3000 "$UP"
tc filter add dev "$WAN" parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev "$WAN" parent 1: protocol ip prio 2 u32 match ip protocol 17 0xff match ip dport 3478 0xffff flowid 1:10
tc filter add dev "$WAN" parent 1: protocol ip prio 3 u32 match ip protocol 6 0xff match ip dport 22 flowid 1:20
tc filter add dev "$WAN" parent 1: protocol ipv6 prio 4 u32 match ip6 protocol 6 0xff match ip6 dport 22 0xffff flowid 1:20
say "uplink ready"
# expect: PS001 20
