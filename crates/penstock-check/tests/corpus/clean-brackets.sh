#!/bin/bash
IF=eth0
if [ "$IF" = eth0 ] && [[ $IF == eth* ]]; then
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq_codel
fi
