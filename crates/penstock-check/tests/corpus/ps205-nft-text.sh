#!/bin/bash
# expect: PS205 7
nft -f - <<EOF
table inet qos {
  chain mark_in {
    type filter hook input priority mangle; policy accept;
    tcp sport 443 meta mark set 5
  }
}
EOF
tc qdisc replace dev eth1 root handle 1: prio
tc filter add dev eth1 parent 1: protocol ip prio 1 handle 5 fw classid 1:1
