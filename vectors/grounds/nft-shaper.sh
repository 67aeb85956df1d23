#!/bin/sh
# Marks by nft, the ruleset built in a variable.
RULES="flush ruleset
table inet mangle {"
add() { RULES="$RULES
$1"; }
add "	chain forward {"
add "		type filter hook forward priority mangle; policy accept;"
for p in 22 53 123; do
	add "		meta l4proto { tcp, udp } th dport $p meta mark set 0x1"
done
add "		ip dscp ef meta mark set 0x2 counter"
add "		ct mark != 0x0 meta mark set ct mark"
add "	}"
add "}"
echo "$RULES" | nft -f - || exit 2
nft list chain inet mangle forward | grep -c 'dport'
nft add rule inet mangle forward ip saddr 192.168.1.0/24 meta mark set 0x9
nft -a list chain inet mangle forward | sed -n 's/.*saddr.* # handle \([0-9]*\)$/\1/p' > /tmp/handle
read -r h < /tmp/handle
nft delete rule inet mangle forward handle "$h" && echo deleted
nft insert rule inet mangle forward oifname eth0 tcp flags syn meta mark set 0x5
tc qdisc add dev eth0 root handle 1: prio
for m in 1 2; do tc filter add dev eth0 parent 1: protocol ip prio $m handle $m fw flowid 1:$m; done
