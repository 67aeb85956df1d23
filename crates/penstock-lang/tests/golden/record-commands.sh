#!/bin/sh
# Writes what a real tc says of each line of commands.txt: exit code, |, its first line on stderr (empty where that is a
# usage text), |, the command. Wants root in a throw-away network namespace, and tc's name as its argument.
#   unshare -n ./record-commands.sh tc > commands-6.1.txt
tc=${1:-tc}
here=$(dirname "$0")
ip link add d0 type dummy && ip link set d0 up && ip link add d1 type dummy && ip link set d1 up || exit 1
grep '^tc' "$here/commands.txt" | while read -r line; do
    tc qdisc del dev d0 root 2>/dev/null
    tc qdisc del dev d1 root 2>/dev/null
    tc qdisc del dev d1 clsact 2>/dev/null
    tc qdisc add dev d0 root handle 1: htb default 10
    tc class add dev d0 parent 1: classid 1:10 htb rate 1mbit
    said=$($tc ${line#tc} 2>&1 >/dev/null)
    code=$?
    first=$(printf '%s\n' "$said" | sed -n '1{/^Usage:/!p}')
    printf '%s|%s|%s\n' "$code" "$first" "$line"
done
