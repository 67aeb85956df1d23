#!/bin/bash
# Reads one device's tree and writes the same onto another, as text.
set -e
tc qdisc add dev eth0 root handle 1: drr
for c in 1 2; do tc class add dev eth0 parent 1: classid 1:$c drr quantum $((c * 1500)); done
tc qdisc add dev eth0 parent 1:1 handle 11: pfifo limit 11
tc qdisc add dev eth0 parent 1:2 handle 12: bfifo limit 12000

{
	tc qdisc show dev eth0 | awk '
		$2 == "drr" { print "qdisc add dev eth1 root handle", $3, "drr" }
		$2 ~ /fifo$/ && $4 == "parent" {
			lim = $7; sub(/[pb]$/, "", lim)
			later[n++] = "qdisc add dev eth1 parent " $5 " handle " $3 " " $2 " limit " lim
		}
		END { for (i = 0; i < n; i++) print later[i] }' > /tmp/qdiscs
	tc class show dev eth0 | awk '{ for (i = 1; i < NF; i++) if ($i == "quantum") { q = $(i + 1); sub(/b$/, "", q); print "class add dev eth1 parent 1: classid", $3, "drr quantum", q } }' > /tmp/classes
}
head -1 /tmp/qdiscs > /tmp/all
sort /tmp/classes >> /tmp/all
tail -n +2 /tmp/qdiscs >> /tmp/all
cat /tmp/all
tc -batch /tmp/all
diff <(tc qdisc show dev eth0 | sed 's/eth0/X/') <(tc qdisc show dev eth1 | sed 's/eth1/X/') && echo "the same"
