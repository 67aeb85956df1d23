#!/bin/bash
# the device of the default route
set -Eeuo pipefail
for cmd in tc ip nft; do command -v "$cmd" >/dev/null 2>&1 || { printf '%s\n' "$cmd is needed" >&2; exit 127; }; done
[[ $EUID -eq 0 ]] || exec sudo -- "$0" "$@"
DEV=$(ip -o -4 route show to default | awk '{print $5; exit}')
mapfile -t hosts < <(getent ahostsv4 example.com | awk '{print $1}' | sort -u)
tc qdisc replace dev "$DEV" root handle 1: prio
for h in "${hosts[@]:-192.0.2.80}"; do
  tc filter add dev "$DEV" parent 1: protocol ip prio 1 u32 match ip dst "$h"/32 flowid 1:3
done
