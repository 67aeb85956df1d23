#!/bin/sh
# fq counts bytes in quantum, not packets
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq quantum 2 initial_quantum 15140
# expect: PS167 4
