#!/bin/bash
# expect: PS345 12
nft -f - <<E
table ip nat {
  chain pre { type nat hook prerouting priority dstnat;
    iifname "wan" tcp dport 8080 dnat to 192.168.1.10:80
  }
}
table ip filter {
  chain fwd { type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname "wan" ip daddr 192.168.1.10 tcp dport 8080 accept
  }
}
E
