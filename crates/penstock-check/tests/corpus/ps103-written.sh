#!/bin/bash
# expect: PS103 8
set -e
cat > /usr/local/sbin/shape <<'EOF'
#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 40mbit ceil 4mbit
tc qdisc add dev eth0 parent 1:10 fq_codel
EOF
chmod +x /usr/local/sbin/shape
cat > /etc/systemd/system/shape.service <<'EOF'
[Service]
Type=oneshot
ExecStart=/usr/local/sbin/shape
EOF
systemctl daemon-reload
systemctl enable --now shape
