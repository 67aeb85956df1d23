#!/bin/bash
# set -e with a deletion that may fail
set -euo pipefail
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc add dev eth0 root fq_codel
