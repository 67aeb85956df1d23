#!/bin/bash
# cake that does not shape
# with: --rate 20mbit
# with: --dev eth0
# expect: PS159 6
tc qdisc replace dev eth0 root cake besteffort
