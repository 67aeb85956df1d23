#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root cake bandwith 20mbit
# expect: PS001 3
