#!/bin/sh
tc qdisc del dev eth0 root
tc qdisc add dev eth0 root handle 1: htb default 30
# expect: PS119 3
