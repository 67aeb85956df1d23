#!/bin/bash
LOCK=/run/lock/shape.d
exec 9> /run/shape.fd
if ! mkdir "$LOCK" 2>/dev/null; then echo busy; exit 1; fi
done_=0
finish() {
	local s=$?
	rmdir "$LOCK"
	[ $done_ = 1 ] || { echo "rolling back (status $s)"; tc qdisc del dev eth0 root 2>/dev/null; }
}
trap finish EXIT
trap 'echo "hup: reload"; reloads=$((reloads + 1))' HUP
trap 'exit 143' TERM
reloads=0
tc qdisc add dev eth0 root handle 1: prio
kill -HUP $$
kill -HUP $$
echo "reloads $reloads"
( trap 'echo "inner exit"' EXIT; exit 2 )
echo "inner: $?"
trap - HUP
trap -p EXIT
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:1 || exit 1
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match nonsense || exit 5
done_=1
