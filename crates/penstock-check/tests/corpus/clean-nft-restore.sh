#!/bin/bash
# connections' marks put back by nft
# restore marks to packets by nft
nft -f - <<'N'
table inet q {
  chain pre {
    type filter hook prerouting priority mangle;
    meta mark set ct mark
  }
  chain post {
    type filter hook postrouting priority mangle;
    oifname "eth0" udp dport 5060 ct mark set 7 meta mark set 7
  }
}
N
tc qdisc replace dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol all prio 1 handle 7 fw classid 1:1
