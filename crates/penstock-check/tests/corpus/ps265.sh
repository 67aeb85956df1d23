#!/bin/sh
tc qdisc replace dev eth0 root cake bandwidth 20mbit besteffort fwmark 0xf
# expect: PS265 2
