#!/bin/bash
set -euo pipefail
WAN=eth0
tc qdisc replace dev $WAN root handle 1: htb default 30
tc class replace dev $WAN parent 1: classid 1:1 htb rate 95mbit ceil 95mbit
declare -a CLASS=("10 20mbit 0" "20 50mbit 1" "30 25mbit 2")
for line in "${CLASS[@]}"; do
  read -r id rate prio <<< "$line"
  tc class replace dev $WAN parent 1:1 classid 1:$id htb rate $rate ceil 95mbit prio $prio quantum 6000
  tc qdisc replace dev $WAN parent 1:$id handle $id: fq_codel
done
nft -f - <<'NFT'
table inet qos
delete table inet qos
table inet qos {
	chain postrouting {
		type filter hook postrouting priority mangle; policy accept;
		oifname "eth0" ip dscp ef meta priority set 1:10
		oifname "eth0" udp dport { 53, 123, 5060 } meta priority set 1:10
		oifname "eth0" tcp dport { 80, 443 } meta priority set 1:20
	}
}
NFT
