#!/bin/sh
tc qdisc del dev eth0 clsact 2>/dev/null
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress protocol all prio 1 matchall action police rate 50mbit burst 256k conform-exceed drop
