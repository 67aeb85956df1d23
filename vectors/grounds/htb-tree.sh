#!/bin/bash
# A tree by recursion, from "parent:child:rate" lines.
tree="root:1:100
1:10:60
1:20:40
10:11:20
10:12:40
20:21:40"
DEV=eth1
tc qdisc add dev $DEV root handle 1: htb default 12
add() {
	local parent=$1 indent=$2 p c r
	while IFS=: read -r p c r; do
		[ "$p" = "$parent" ] || continue
		if [ "$parent" = root ]; then
			tc class add dev $DEV parent 1: classid 1:$c htb rate ${r}mbit
		else
			tc class add dev $DEV parent 1:$parent classid 1:$c htb rate ${r}mbit ceil 100mbit
		fi
		echo "$indent$c ($r)"
		add "$c" "$indent  "
	done <<< "$tree"
}
add root ""
leaves=$(tc class show dev $DEV | awk '!/ root /{parents[$5]; ids[$3]} END{for (i in ids) if (!(i in parents)) print i}' | sort)
for leaf in $leaves; do
	n=${leaf#1:}
	tc qdisc add dev $DEV parent $leaf handle $n: fq_codel limit $((n * 10))
done
echo "leaves: "$leaves
