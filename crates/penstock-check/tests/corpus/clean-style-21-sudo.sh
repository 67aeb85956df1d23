#!/bin/bash
[[ $EUID -eq 0 ]] || exec sudo -E "$0" "$@"
command -v tc >/dev/null || { echo "no tc" >&2; exit 127; }
command tc qdisc replace dev eth0 root fq_codel quantum 300 limit 2000
sudo -n tc qdisc show dev eth0
sudo -E env LC_ALL=C tc -s qdisc show dev eth0
