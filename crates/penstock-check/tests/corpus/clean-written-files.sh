#!/bin/bash
set -e
DEV=${1:-eth0}
RATE=50mbit
cat > /usr/local/sbin/shape <<EOF
#!/bin/sh
set -e
tc qdisc del dev $DEV root 2>/dev/null || true
tc qdisc add dev $DEV root handle 1: htb default 10
tc class add dev $DEV parent 1: classid 1:10 htb rate $RATE ceil $RATE
tc qdisc add dev $DEV parent 1:10 fq_codel
EOF
chmod +x /usr/local/sbin/shape
cat > /etc/systemd/system/shape.service <<'EOF'
[Unit]
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/shape
ExecStop=-/sbin/tc qdisc del dev eth0 root
[Install]
WantedBy=multi-user.target
EOF
systemctl enable --now shape.service
