#!/bin/bash
# DSCP to class by a table: hexadecimal, shifts, printf.
declare -A dscp=([EF]=46 [AF41]=34 [AF31]=26 [CS1]=8)
order=(EF AF41 AF31 CS1)
tc qdisc add dev eth0 root handle 1: prio bands 5 priomap 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4
band=1
for name in "${order[@]}"; do
	value=${dscp[$name]}
	tos=$(printf '0x%02x' $((value << 2)))
	echo "$name dscp $value tos $tos binary $(for ((b = 5; b >= 0; b--)); do printf %d $(((value >> b) & 1)); done)"
	tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos "$tos" 0xfc flowid 1:$band
	tc filter add dev eth0 parent 1: protocol ipv6 prio 2 u32 match ip6 priority "$tos" 0xfc flowid 1:$band
	iptables -t mangle -A POSTROUTING -m dscp --dscp-class "$name" -j CLASSIFY --set-class 1:$band
	((band++))
done
iptables -t mangle -S POSTROUTING | awk '/CLASSIFY/ {print $NF}' | paste -sd' ' -
