#!/bin/bash
# a finding that is allowed
# penstock: allow PS250
tc qdisc add dev eth0 root fq_codel
