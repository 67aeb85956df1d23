#!/usr/bin/env bash
# Long and short options by hand, validation by regular expressions, usage on standard error.
usage() {
	cat >&2 <<-USAGE
	Usage: ${0##*/} [-h] [-d DEV] [-r RATE] [--delay MS] ACTION
	USAGE
}
is_rate() { [[ $1 =~ ^[0-9]+(\.[0-9]+)?(k|m|g)?bit$ ]]; }
main() {
	local dev=eth0 rate="" delay=0 action="" OPTIND
	while [ $# -gt 0 ]; do
		case $1 in
			-h|--help) usage; return 0 ;;
			-d|--dev) dev=${2:?missing device}; shift ;;
			--dev=*) dev=${1#*=} ;;
			-r|--rate) rate=$2; shift ;;
			--delay) delay=$2; shift ;;
			--) shift; break ;;
			-*) echo "unknown option: $1" >&2; usage; return 64 ;;
			*) action=$1 ;;
		esac
		shift
	done
	if ! ip link show dev "$dev" &>/dev/null; then echo "no such device: $dev" >&2; return 2; fi
	if [ -n "$rate" ] && ! is_rate "$rate"; then echo "bad rate: $rate" >&2; return 65; fi
	case $action in
		add)
			local -a args=(qdisc replace dev "$dev" root)
			if [ "$delay" -gt 0 ]; then args+=(netem delay "${delay}ms"); else args+=(tbf rate "$rate" burst 32kbit latency 100ms); fi
			tc "${args[@]}" ;;
		del) tc qdisc del dev "$dev" root ;;
		"") echo "no action" >&2; return 66 ;;
	esac
}
n=0
try() { main "$@"; echo "$((++n)): $? ($*)"; }
try -d eth0 -r 5mbit add
try --dev=eth1 --delay 20 add
try -d eth1 del
try -d eth1 del
try -d wlan0 add
try -r fast add
try -x
try -r 2.5mbit
try -h
