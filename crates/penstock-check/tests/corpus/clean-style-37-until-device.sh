#!/bin/sh
# Waits for the modem, then shapes it.
n=0
until ip link show wwan0 >/dev/null 2>&1; do
    n=$((n + 1))
    [ $n -ge 30 ] && { echo "no modem" >&2; exit 1; }
    sleep 1
done
if tc qdisc show dev wwan0 | grep -q '^qdisc cake'; then
    tc qdisc change dev wwan0 root cake bandwidth 12mbit
else
    tc qdisc replace dev wwan0 root cake bandwidth 12mbit besteffort
fi
