#!/bin/bash
# expect: PS121 8
cat > /etc/systemd/system/cap.service <<'EOF'
[Unit]
Description=cap
[Service]
Type=oneshot
ExecStart=/sbin/tc qdisc replace dev eth0 root tbf rate 10mbit burst 1000 latency 50ms
EOF
systemctl daemon-reload
