#!/bin/sh
# penstock: allow PS999
tc qdisc replace dev eth0 root fq_codel
# penstock: allow PS146
tc qdisc replace dev eth1 root fq_codel
# expect: PS008 2
# expect: PS008 4
