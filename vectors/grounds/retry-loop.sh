#!/bin/sh
# Waits for a device that comes later; a watchdog in the background; both take their time.
(
	sleep 2
	ip link add late0 type dummy
	ip link set late0 up
) &
maker=$!

tries=0
until ip link show late0 >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -gt 10 ] && { echo "gave up"; exit 1; }
	sleep 0.7
done
echo "there after $tries tries"
wait $maker
tc qdisc add dev late0 root tbf rate 2mbit burst 4k latency 20ms

timeout 1 sh -c 'while :; do sleep 0.4; echo tick; done'
echo "watchdog: $?"
