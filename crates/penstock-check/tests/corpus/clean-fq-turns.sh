#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq quantum 3028 initial_quantum 15140 maxrate 1gbit flow_limit 200
