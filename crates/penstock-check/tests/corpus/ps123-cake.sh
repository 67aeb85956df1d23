#!/bin/bash
# cake on VDSL without overhead
# expect: PS123 4
tc qdisc replace dev ppp0 root cake bandwidth 900kbit
