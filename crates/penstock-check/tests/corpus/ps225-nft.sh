#!/bin/bash
# expect: PS225 8
ip rule add fwmark 1 table 100
ip route add default dev tun0 table 100
nft -f - <<E
table inet m {
  chain post { type filter hook postrouting priority mangle;
    tcp dport 443 meta mark set 1
  }
}
E
