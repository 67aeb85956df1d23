#!/bin/sh
# /etc/hotplug.d/iface/13-shape, with the helper functions that OpenWrt would have sourced.
ACTION=ifup INTERFACE=wan DEVICE=eth0

config_state=""
config_set() { eval "CONFIG_$1=\"$2\""; }
config_get() { eval "$1=\"\${CONFIG_$2:-$3}\""; }
logger() { shift 2; echo "user.notice: $*"; }

config_set enabled 1
config_set upload 512
config_set classgroup "Priority Express Normal Bulk"

[ "$ACTION" = ifup ] || exit 0
[ -n "$DEVICE" ] || exit 0
config_get enabled enabled 0
[ "$enabled" -eq 1 ] 2>/dev/null || { logger -t shape disabled; exit 0; }
config_get upload upload 128
config_get groups classgroup
config_get missing nothing fallback

logger -t shape "up on $DEVICE with $upload kbit ($missing)"

tc qdisc del dev $DEVICE root >&- 2>&-
tc qdisc add dev $DEVICE root handle 1: hfsc default 30
tc class add dev $DEVICE parent 1: classid 1:1 hfsc sc rate ${upload}kbit ul rate ${upload}kbit
n=1
for g in $groups; do
	share=$((upload / (n * 2)))
	tc class add dev $DEVICE parent 1:1 classid 1:${n}0 hfsc rt m1 $((share * 2))kbit d 10ms m2 ${share}kbit ls m2 ${share}kbit ul rate ${upload}kbit
	tc qdisc add dev $DEVICE parent 1:${n}0 handle ${n}00: fq_codel limit 800 quantum 300 noecn
	tc filter add dev $DEVICE parent 1: prio $n protocol ip handle $n/0xff fw flowid 1:${n}0
	echo "$g -> 1:${n}0"
	n=$((n + 1))
done
