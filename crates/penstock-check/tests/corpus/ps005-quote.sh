#!/bin/bash
# an open quote
# expect: PS005 6
tc qdisc replace dev eth0 root fq_codel
if tc qdisc show dev eth0; then
echo yes
