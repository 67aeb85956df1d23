#!/bin/bash
# expect: PS211 8
cat > /etc/qos.nft <<'EOF'
table inet shaping {
  chain classify {
    type filter hook postrouting priority 0;
    udp dport 53 meta priority set 1:20
    tcp dport { 20, 21, 873 } meta priority set 1:40
  }
}
EOF
nft -f /etc/qos.nft
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:20 htb rate 20mbit
