#!/bin/bash
# expect: PS014 5
cat > /etc/sysctl.d/90-net.conf <<EOF
net.core.default_qdisc = fq
net.ipv4.tcp_congestion_controll = bbr
net.ipv4.conf.eth0.rp_filter = 2
EOF
sysctl --system
tc qdisc replace dev eth0 root fq
