#!/bin/bash
# expect: PS001 5
UP=18000
DOWN=90000
tc qdisc replace dev eth1 root cake bandwidth ${DWON}kbit
tc qdisc replace dev eth0 root cake bandwidth ${UP}kbit
