#!/bin/sh
# Police by source, one filter a host, with indexes and shared actions.
DEV=eth1
tc qdisc add dev $DEV handle ffff: ingress
tc actions add action police rate 1mbit burst 20k conform-exceed drop/pipe index 10
prio=1
for h in 11 12 13; do
	tc filter add dev $DEV parent ffff: protocol ip prio $prio u32 match ip src 192.168.1.$h/32 action police index 10
	prio=$((prio + 1))
done
tc filter add dev $DEV parent ffff: protocol ip prio 9 u32 match ip protocol 17 0xff action drop
tc filter add dev $DEV parent ffff: protocol ip prio 10 u32 match ip src 192.168.1.66 action pass
tc filter show dev $DEV parent ffff: | grep -c 'police'
tc filter del dev $DEV parent ffff: prio 2
tc filter show dev $DEV ingress | grep '^filter' | awk '{print $5, $7}' | sort -u
tc actions del action police index 10; echo "del: $?"
