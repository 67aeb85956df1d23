#!/bin/bash
# What nft has and is not simulated is no mistake.
nft add table inet t
nft add chain inet t c
nft add rule inet t c meta cgroup 5 accept
nft add rule inet t c ct status assured accept
nft add rule inet t c tproxy to :1
nft add chain inet t in '{ type filter hook ingress device "eth0" priority filter; }'
