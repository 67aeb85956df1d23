#!/bin/bash
# a module that there is not
# expect: PS014 4
modprobe sch_fqcodel
tc qdisc replace dev eth0 root fq_codel
