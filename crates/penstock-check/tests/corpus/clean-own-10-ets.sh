#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: ets bands 3 strict 1 quanta 3000 1500 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
