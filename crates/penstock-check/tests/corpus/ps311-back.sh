#!/bin/bash
# expect: PS311 5
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev eth0
