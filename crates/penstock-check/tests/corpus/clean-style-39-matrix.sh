#!/bin/bash
# The measurements of a paper: every delay with every loss.
DEV=${1:-eth0}
DELAYS=(10 50 100)
LOSSES=(0 0.1 1)
clear_dev() { tc qdisc del dev "$DEV" root 2>/dev/null || true; }
trap clear_dev EXIT
for d in "${DELAYS[@]}"; do
    for l in "${LOSSES[@]}"; do
        clear_dev
        tc qdisc add dev "$DEV" root netem delay "${d}ms" loss "${l}%" limit 10000
        for run in {1..3}; do
            echo "$d $l $run"
            iperf3 -c 198.51.100.9 -t 10 -J > "out-$d-$l-$run.json"
        done
    done
done
