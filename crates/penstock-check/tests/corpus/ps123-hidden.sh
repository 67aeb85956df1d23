#!/bin/sh
# ADSL upstream, and the rate in bytes by mistake: that the overhead is missing does not wait for the other to be mended.
# expect: PS114 5
# expect: PS123 5
tc qdisc replace dev ppp0 root tbf rate 6mbps burst 16kb latency 40ms
