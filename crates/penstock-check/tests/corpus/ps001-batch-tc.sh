#!/bin/bash
# expect: PS001 5
tc qdisc del dev eth0 root 2>/dev/null
tc -batch - <<EOF
tc qdisc add dev eth0 root fq_codel
EOF
