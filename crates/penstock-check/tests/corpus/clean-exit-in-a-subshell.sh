#!/bin/sh
# what ends one part does not end the next
(
tc qdisc replace dev eth0 root fq_codel
exit 0
)
tc qdisc replace dev eth1 root fq_codel
