#!/bin/bash
WAN=eth1
tc qdisc del dev $WAN root 2>/dev/null
tc qdisc add dev $WAN root handle 1: htb default 30
tc class add dev $WAN parent 1: classid 1:1 htb rate 10mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 3mbit ceil 10mbit
tc class add dev $WAN parent 1:1 classid 1:30 htb rate 2mbit ceil 10mbit
for c in 10 20 30; do tc qdisc add dev $WAN parent 1:$c sfq perturb 10; done
tc filter add dev $WAN parent 1: protocol ip prio 1 handle 1 fw flowid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 2 handle 2 fw flowid 1:20
nft -f - <<NFT
table inet shaper {
  chain post {
    type filter hook postrouting priority mangle; policy accept;
    oifname "$WAN" udp dport { 5060, 10000-20000 } meta mark set 1
    oifname "$WAN" tcp dport 22 meta mark set 3
  }
}
NFT
# expect: PS200 11
# expect: PS202 17
