#!/bin/bash
# cake above the link
# with: --rate 100mbit
# expect: PS104 5
tc qdisc replace dev eth0 root cake bandwidth 120mbit
