#!/bin/sh
# the HOWTO's prio with sfq, tbf, sfq
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:1 handle 10: sfq perturb 10
tc qdisc add dev eth0 parent 1:2 handle 20: tbf rate 2mbit buffer 3200 limit 30000
tc qdisc add dev eth0 parent 1:3 handle 30: sfq perturb 10
