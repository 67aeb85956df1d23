#!/bin/sh
# Marks by nftables, classes by mark.
WAN=wan0
nft -f - <<'NFT'
table inet shape {
    chain post {
        type filter hook postrouting priority mangle; policy accept;
        oifname "wan0" tcp dport { 22, 3389 } meta mark set 0x10
        oifname "wan0" udp dport 1194 meta mark set 0x10
        oifname "wan0" tcp dport { 119, 563 } meta mark set 0x30
    }
}
NFT
tc qdisc replace dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 40mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 10mbit ceil 40mbit prio 0
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 25mbit ceil 40mbit prio 1
tc class add dev $WAN parent 1:1 classid 1:30 htb rate 5mbit ceil 40mbit prio 2
for c in 10 20 30; do tc qdisc add dev $WAN parent 1:$c fq_codel; done
tc filter add dev $WAN parent 1: protocol all prio 1 handle 0x10 fw classid 1:10
tc filter add dev $WAN parent 1: protocol all prio 1 handle 0x30 fw classid 1:30
