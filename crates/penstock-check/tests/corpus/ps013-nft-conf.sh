#!/bin/bash
# expect: PS013 8
cat > /etc/nftables.conf <<'EOF'
flush ruleset
table inet qos {
  chain post {
    type filter hook postrouting priority mangle; policy accept;
    oifname "eth0" tcp dport 873 meta mark sett 0x20
  }
}
EOF
systemctl restart nftables
tc qdisc replace dev eth0 root fq
