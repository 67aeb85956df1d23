#!/bin/bash
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action police rate 10mbit burst 1000 conform-exceed drop
# expect: PS234 4
