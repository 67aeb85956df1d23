#!/usr/bin/env bash
# Classes from a declarative text, as FireQOS has them: functions named by keywords.
set -o pipefail
shopt -s extglob

declare -A CLASS_OF=()
declare -i class_no=10 prio=0
interface_dev= interface_name= parent_rate=

warning() { printf >&2 'WARNING: %s\n' "$*"; }
error() { printf >&2 'ERROR: %s\n' "$*"; return 1; }

tc_cmd() {
	[ "${DEBUG:-0}" = 1 ] && printf '%q ' tc "$@" && echo
	tc "$@" || error "tc $* failed with code $?"
}

rate2bps() {
	local r="$1" p="${2:-0}" n
	case "$r" in
		+([0-9])mbit|+([0-9])Mbit) n=$(( ${r%[mM]bit} * 1000 )) ;;
		+([0-9])kbit) n=${r%kbit} ;;
		+([0-9])%) n=$(( p * ${r%\%} / 100 )) ;;
		*) error "cannot understand rate '$r'"; return 1 ;;
	esac
	echo "$n"
}

interface() {
	interface_dev=$1 interface_name=$2; shift 2
	local dir=$1; shift
	while [ $# -gt 0 ]; do
		case "$1" in
			rate) parent_rate=$(rate2bps "$2") || return 1; shift 2 ;;
			*) warning "unknown keyword $1"; shift ;;
		esac
	done
	tc qdisc del dev "$interface_dev" root 2>/dev/null
	tc_cmd qdisc add dev "$interface_dev" root handle 1: htb default 5000 r2q 8
	tc_cmd class add dev "$interface_dev" parent 1: classid 1:1 htb rate "${parent_rate}kbit"
	echo "interface $interface_dev ($interface_name, $dir) rate ${parent_rate}kbit"
}

class() {
	local name=$1 commit=1% ceil=$parent_rate; shift
	while [ $# -gt 0 ]; do
		case "$1" in
			commit|rate) commit=$2; shift 2 ;;
			max|ceil) ceil=$(rate2bps "$2" "$parent_rate"); shift 2 ;;
			*) error "class $name: unknown option $1"; return 1 ;;
		esac
	done
	local kbit; kbit=$(rate2bps "$commit" "$parent_rate") || return 1
	[ "$name" = default ] && class_no=5000
	tc_cmd class add dev "$interface_dev" parent 1:1 classid "1:$class_no" htb rate "${kbit}kbit" ceil "${ceil}kbit" prio $((prio++))
	tc_cmd qdisc add dev "$interface_dev" parent "1:$class_no" handle "$class_no:" sfq perturb 10
	CLASS_OF[$name]=1:$class_no
	class_no+=10
	last=$name
}

match() {
	local proto ports p
	case "$1" in tcp) proto=6 ;; udp) proto=17 ;; icmp) proto=1 ;; esac
	ports=${3//,/ }
	if [ -z "$ports" ]; then
		tc_cmd filter add dev "$interface_dev" parent 1: protocol ip prio "$class_no" u32 match ip protocol $proto 0xff flowid "${CLASS_OF[$last]}"
		return
	fi
	for p in $ports; do
		tc_cmd filter add dev "$interface_dev" parent 1: protocol ip prio "$class_no" u32 \
			match ip protocol $proto 0xff match ip dport "$p" 0xffff flowid "${CLASS_OF[$last]}"
	done
}

interface eth0 wan output rate 10mbit
  class voip commit 10%
    match udp ports 5060,10000
  class interactive commit 20% max 80%
    match tcp ports 22,23
    match icmp
  class broken speed 9
  class default commit 500kbit
for name in voip interactive broken default; do
	echo "$name=${CLASS_OF[$name]:-none}"
done
