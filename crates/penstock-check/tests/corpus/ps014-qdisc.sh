#!/bin/bash
# a default qdisc that there is not
# expect: PS014 4
sysctl -w net.core.default_qdisc=fqcodel
tc qdisc replace dev eth0 root fq_codel
