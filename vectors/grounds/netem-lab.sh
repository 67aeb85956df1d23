#!/usr/bin/env bash
# Emulates links from a table: name, delay, jitter, loss, rate.
set -Eeuo pipefail
trap 'echo "line $LINENO: failed" >&2' ERR

readonly DEV=eth0
profiles=$(cat <<'TABLE'
# name   delay jitter loss rate
3g       150ms 30ms   1%   1mbit
lte      60ms  10ms   0.1% 20mbit
fiber    4ms   0ms    0%   500mbit
TABLE
)

apply() {
	local want=$1 name delay jitter loss rate
	while read -r name delay jitter loss rate; do
		[[ $name == "#" ]] && continue
		if [[ $name == "$want" ]]; then
			local args=(delay "$delay")
			[[ $jitter != 0ms ]] && args+=("$jitter")
			[[ $loss != 0% ]] && args+=(loss "$loss")
			args+=(rate "$rate")
			tc qdisc replace dev "$DEV" root handle 1: netem "${args[@]}"
			tc qdisc show dev "$DEV" | head -n1
			return 0
		fi
	done <<< "$profiles"
	return 1
}

for p in 3g lte fiber; do apply "$p"; done
if ! apply dialup; then echo "no profile dialup"; fi
apply lte
apply satellite
echo never
