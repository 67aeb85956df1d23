#!/bin/sh
tc qdisc replace dev eth0 root cake docsis nat
# expect: PS159 2
