# Functions that scripts source.
IFACE=${IFACE:-eth0}
log() { echo "[$(basename "$0")] $*"; }
die() { echo "error: $*" >&2; exit 3; }
have_qdisc() { tc qdisc show dev "$1" | grep -q "qdisc $2 "; }
clear_dev() {
	local dev
	for dev in "$@"; do
		tc qdisc del dev "$dev" root 2>/dev/null
		tc qdisc del dev "$dev" ingress 2>/dev/null
	done
	return 0
}
