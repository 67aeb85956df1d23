#!/bin/bash
# set -e and a hushed deletion
# expect: PS252 5
set -euo pipefail
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq_codel
