#!/bin/bash
# expect: PS002 4
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio bands 2
