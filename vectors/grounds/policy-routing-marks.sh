#!/bin/bash
# Several uplinks by marks: tables by name, rules in a loop, a check that reads it back.
set -eu
declare -a names=(wan1 wan2) devs=(eth0 eth1) gws=(10.0.0.254 192.168.1.254)
for i in 0 1; do
	table=$((100 + i)) mark=$((i + 1))
	grep -q "^$table" /etc/iproute2/rt_tables || printf '%d\t%s\n' "$table" "${names[i]}" >> /etc/iproute2/rt_tables
	ip route replace default via "${gws[i]}" dev "${devs[i]}" table "${names[i]}"
	while ip rule del fwmark $mark table "${names[i]}" 2>/dev/null; do :; done
	ip rule add fwmark $mark table "${names[i]}" priority $((1000 + i))
	iptables -t mangle -A PREROUTING -i "${devs[i]}" -m conntrack --ctstate NEW -j CONNMARK --set-mark $mark
done
iptables -t mangle -A OUTPUT -j CONNMARK --restore-mark
ip rule show | grep -E 'fwmark 0x[0-9a-f]+ ' | sed 's/^\([0-9]*\):.*lookup /\1 /'
ip route show table wan2
ip route flush table wan1
ip route show table wan1 | wc -l
