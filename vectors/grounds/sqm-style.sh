#!/bin/sh
# One iface, egress and ingress by an ifb, parameters by environment with defaults.
: "${IFACE:=eth0}" "${UPLINK:=10000}" "${DOWNLINK:=50000}" "${QDISC:=fq_codel}" "${TARGET:=5ms}"
: "${SQM_DEBUG:=0}"
SQM_STATE_DIR=/var/run/sqm
OUTPUT_TARGET="/dev/null"
TC=$(command -v tc)
IP=$(command -v ip)
DEV=ifb4${IFACE}

sqm_logger() {
	LEVEL=$1; shift
	[ "$LEVEL" -le 1 ] && echo "SQM: $*"
	return 0
}
fn_exists() { type "$1" 2>/dev/null | grep -q function; }
tc_wrapper() { $TC "$@" 2>>"$OUTPUT_TARGET" || sqm_logger 1 "failed: tc $*"; }

create_ifb() { $IP link show dev "$DEV" >/dev/null 2>&1 || $IP link add name "$DEV" type ifb; }
get_target() {
	case "$1" in
		auto) echo "target 5ms" ;;
		*ms|*us) echo "target $1" ;;
		*) sqm_logger 0 "bad target $1"; echo "" ;;
	esac
}
get_mtu() {
	BW=$2
	F=1514
	if [ "$BW" -gt 20000 ]; then F=$((F * 2)); fi
	echo "$F"
}

egress() {
	tc_wrapper qdisc del dev "$IFACE" root
	tc_wrapper qdisc add dev "$IFACE" root handle 1: htb default 12 r2q 10
	tc_wrapper class add dev "$IFACE" parent 1: classid 1:1 htb quantum "$(get_mtu "$IFACE" "$UPLINK")" rate "${UPLINK}kbit" ceil "${UPLINK}kbit"
	tc_wrapper class add dev "$IFACE" parent 1:1 classid 1:12 htb rate "$((UPLINK * 95 / 100))kbit" ceil "${UPLINK}kbit" prio 2
	tc_wrapper qdisc add dev "$IFACE" parent 1:12 handle 120: "$QDISC" limit 1001 $(get_target "$TARGET") noecn quantum 300
}
ingress() {
	create_ifb
	$TC qdisc del dev "$IFACE" handle ffff: ingress 2>/dev/null
	$TC qdisc add dev "$IFACE" handle ffff: ingress
	$TC qdisc del dev "$DEV" root 2>/dev/null
	$TC qdisc add dev "$DEV" root handle 1: htb default 10
	$TC class add dev "$DEV" parent 1: classid 1:1 htb rate "${DOWNLINK}kbit" ceil "${DOWNLINK}kbit"
	$TC class add dev "$DEV" parent 1:1 classid 1:10 htb rate "${DOWNLINK}kbit" ceil "${DOWNLINK}kbit" prio 0
	$TC qdisc add dev "$DEV" parent 1:10 handle 110: "$QDISC" limit 1001 ecn quantum 300
	$IP link set dev "$DEV" up
	$TC filter add dev "$IFACE" parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev "$DEV"
}

mkdir -p "$SQM_STATE_DIR"
fn_exists egress && egress
ingress
echo "IFACE=\"$IFACE\" DEV=\"$DEV\" UPLINK=$UPLINK" > "$SQM_STATE_DIR/$IFACE.state"
cat "$SQM_STATE_DIR/$IFACE.state"
sqm_logger 1 "started on $IFACE ($QDISC)"
