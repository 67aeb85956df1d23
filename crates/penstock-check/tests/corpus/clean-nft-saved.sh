#!/bin/bash
nft -f - <<EOF
table inet mangle {
  chain post {
    type filter hook postrouting priority mangle;
    oifname "eth0" tcp dport 873 meta mark set 6
    ct mark set meta mark
  }
}
EOF
ip link add ifb0 type ifb; ip link set ifb0 up
tc qdisc replace dev eth0 clsact
tc filter add dev eth0 ingress matchall action connmark action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: prio
tc filter add dev ifb0 parent 1: protocol all prio 1 handle 6 fw classid 1:1
