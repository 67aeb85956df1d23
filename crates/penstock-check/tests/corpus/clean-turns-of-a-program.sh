#!/bin/bash
while sleep 10; do
    while read -r _ kind handle _ dev rest; do
        tc -s qdisc show dev "$dev"
    done < <(tc qdisc show)
done
