#!/bin/bash
# The ifb is made under one name and used under another, twice.
# expect: PS241 5
tc qdisc del dev eth0 ingress 2>/dev/null
ip link add ifbwan type ifb
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb_wan
tc qdisc replace dev ifb_wan root cake bandwidth 20mbit ingress nat
