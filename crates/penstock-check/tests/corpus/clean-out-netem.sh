#!/bin/bash
# a line of 40 ms and 0.5 percent loss
DEV=veth1
ip link add veth0 type veth peer name veth1
ip link set veth0 up
ip link set veth1 up
tc qdisc add dev $DEV root netem delay 40ms 5ms distribution normal loss 0.5% limit 5000
