#!/bin/bash
# the first deletion ends the script
# expect: PS252 5
set -euo pipefail
tc qdisc del dev eth0 root
tc qdisc add dev eth0 root fq_codel
