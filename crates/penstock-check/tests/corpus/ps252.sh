#!/bin/bash
# set -e and a bare deletion
# expect: PS252 5
set -e
tc qdisc del dev eth0 root
tc qdisc add dev eth0 root fq_codel
