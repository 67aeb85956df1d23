#!/bin/sh
# expect: PS201 20
#
WAN=wan0
nft -f - <<'NFT'
table inet shape {
    chain pre {
        type filter hook prerouting priority mangle; policy accept;
        iifname "lan0" tcp dport { 22, 3389 } meta mark set 0x10
    }
}
NFT
tc qdisc replace dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 40mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 10mbit ceil 40mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 30mbit ceil 40mbit
tc qdisc add dev $WAN parent 1:10 fq_codel
tc qdisc add dev $WAN parent 1:20 fq_codel
# The mark is 0x10, which is 16.
tc filter add dev $WAN parent 1: protocol all prio 1 handle 10 fw classid 1:10
