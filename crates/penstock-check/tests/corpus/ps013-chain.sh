#!/bin/bash
# expect: PS013 5
# expect: PS013 6
nft add table inet q
nft add rule inet q post udp dport 5060 meta mark set 1
nft add chain inet q late '{ type filter hook postrouting priority mangel; }'
