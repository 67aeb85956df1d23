#!/bin/bash
# delay a container's veth
VETH=${1:-veth0}
tc qdisc replace dev $VETH root netem delay 50ms 5ms distribution normal loss 0.5% limit 2000
sleep 60
tc qdisc del dev $VETH root
