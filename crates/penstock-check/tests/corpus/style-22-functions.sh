#!/bin/bash
# expect: PS001 24
# expect: PS103 25
# expect: PS109 26
die() { printf '%s\n' "$*" >&2; exit 1; }
class() {
    local dev=$1 parent=$2 id=$3 rate=$4 ceil=${5:-$4} prio=${6:-1}
    tc class add dev "$dev" parent "$parent" classid "$id" htb rate "$rate" ceil "$ceil" prio "$prio" || die "class $id"
}
leaf() {
    local dev=$1 id=$2
    shift 2
    tc qdisc add dev "$dev" parent "$id" "$@" || true
}
main() {
    local dev=${1:-eth0}
    # Behind this nothing is sorted.
    tc qdisc del dev "$dev" root 2>/dev/null
    tc qdisc add dev "$dev" root handle 1: htb default 20
    class "$dev" 1: 1:1 80mbit
    class "$dev" 1:1 1:20 60mbit 80mbit 1
    leaf "$dev" 1:20 fq_codel
    leaf "$dev" 1:20 handle 20: pfifo limit 50
    class "$dev" 1:1 1:10 10Mbits 80mbit
    class "$dev" 1:1 1:11 10mbit 8mbit 0
    class "$dev" 1:2 1:12 10mbit
}
main "$@"
