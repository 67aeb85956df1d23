#!/bin/bash
# expect: PS250 5
# expect: PS001 6
[[ $EUID -eq 0 ]] || exec sudo -E "$0" "$@"
command tc qdisc add dev eth0 root fq_codel quantum 300 limit 2000
sudo -n tc qdisc replace dev eth1 root fq_codel quantum 300 flow 100
