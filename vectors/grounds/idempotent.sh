#!/bin/bash
# Ansible-like: does what is missing, and says changed or ok. Runs twice.
changed=0
ensure() {
	local what=$1 test=$2 do=$3
	if eval "$test" >/dev/null 2>&1; then
		echo "ok: $what"
	elif eval "$do"; then
		echo "changed: $what"
		changed=$((changed + 1))
	else
		echo "failed: $what ($?)"
	fi
}
pass() {
	ensure "forwarding" '[ "$(sysctl -n net.ipv4.ip_forward)" -eq 1 ]' 'sysctl -qw net.ipv4.ip_forward=1'
	ensure "ifb" 'ip link show shape-in' 'ip link add shape-in type ifb && ip link set shape-in up'
	ensure "ingress" 'tc qdisc show dev eth0 | grep -q "^qdisc ingress"' 'tc qdisc add dev eth0 ingress'
	ensure "redirect" 'tc filter show dev eth0 parent ffff: | grep -q mirred' \
		'tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev shape-in'
	ensure "cake" 'tc qdisc show dev shape-in | grep -q "^qdisc cake"' 'tc qdisc add dev shape-in root cake bandwidth 45mbit ingress dual-dsthost'
	ensure "route" 'ip route show 10.99.0.0/16 | grep -q via' 'ip route add 10.99.0.0/16 via 10.0.0.99'
	ensure "mark" 'iptables -t mangle -C FORWARD -p udp -j MARK --set-mark 7' 'iptables -t mangle -A FORWARD -p udp -j MARK --set-mark 7'
	ensure "impossible" 'false' 'tc qdisc add dev nowhere root sfq'
}
pass
echo "first: $changed"
changed=0
pass
echo "second: $changed"
