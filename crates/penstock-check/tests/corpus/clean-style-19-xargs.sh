#!/bin/sh
# Every device of a list gets the same queue.
printf '%s\n' eth0 eth1 eth2 | xargs -I{} tc qdisc replace dev {} root fq_codel
echo "qdisc show dev eth0" | xargs tc
