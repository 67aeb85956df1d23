#!/bin/bash
# User data of an instance: sysctl, an address, shaping by a unit's script that is written here.
set -euxo pipefail

cat > /etc/sysctl.d/60-router.conf <<'CONF'
net.ipv4.ip_forward = 1
net.ipv4.conf.all.rp_filter = 2
net.ipv4.tcp_ecn = 1
CONF
sysctl -q -p /etc/sysctl.d/60-router.conf

install -d -m 0755 /var/lib/shape 2>/dev/null || mkdir -p /var/lib/shape
cat > /var/lib/shape/shape.sh <<CONF
#!/bin/sh
DEV=\${1:-eth0}
RATE=$((8 * 1024))
tc qdisc replace dev \$DEV root tbf rate \${RATE}kbit burst 32kbit latency 400ms
CONF
chmod 0755 /var/lib/shape/shape.sh
/var/lib/shape/shape.sh eth1
ip addr add 10.50.0.1/24 dev eth1
test "$(sysctl -n net.ipv4.ip_forward)" = 1
