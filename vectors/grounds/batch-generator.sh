#!/bin/sh
# Many customers: tc -batch from a generator of awk, u32 in one prio.
CUSTOMERS=/tmp/customers
cat > $CUSTOMERS <<LIST
# id;address;down
1;192.168.1.11;4096
2;192.168.1.12;8192

3;192.168.1.13;512
LIST
awk -F';' '
BEGIN {
	print "qdisc add dev eth1 root handle 1: htb default 999"
	print "class add dev eth1 parent 1: classid 1:1 htb rate 100mbit"
}
/^[0-9]/ {
	id = sprintf("%x", $1 + 16)
	printf "class add dev eth1 parent 1:1 classid 1:%s htb rate %dkbit ceil %dkbit\n", id, $3 / 2, $3
	printf "qdisc add dev eth1 parent 1:%s handle %s: fq_codel\n", id, id
	printf "filter add dev eth1 parent 1: protocol ip prio 5 u32 match ip dst %s/32 flowid 1:%s\n", $2, id
	n++
}
END { print "# " n " customers" }' $CUSTOMERS > /tmp/batch
grep -c . /tmp/batch
tail -1 /tmp/batch
tc -batch /tmp/batch || { echo "batch failed: $?"; exit 1; }
tc filter show dev eth1 | grep -o 'flowid [^ ]*' | sort
tc class show dev eth1 | sed -n 's/.*class htb 1:\([0-9a-f]*\) .* ceil \([^ ]*\).*/\1 \2/p' | sort
