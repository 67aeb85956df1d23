#!/bin/sh
# One limit for a guest card.
tc qdisc replace dev eth2 root tbf rate 6mbit burst 16kb latency 40ms

# VDSL upstream
tc qdisc replace dev ppp0 root cake bandwidth 9mbit pppoe-ptm
