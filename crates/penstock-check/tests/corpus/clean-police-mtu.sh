#!/bin/bash
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action police rate 100mbit burst 300k mtu 1500 conform-exceed drop
