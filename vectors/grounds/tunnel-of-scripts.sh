#!/bin/bash
# A main script that writes others, sources some, calls some, and passes variables by export.
set -u
mkdir -p /tmp/shape.d
cat > /tmp/shape.d/10-base <<'PART'
tc qdisc add dev "$DEV" root handle 1: htb default 20
for c in 10 20; do tc class add dev "$DEV" parent 1: classid 1:$c htb rate $((c * RATE))kbit; done
BASE_DONE=yes
PART
cat > /tmp/shape.d/20-leaf <<'PART'
[ "$BASE_DONE" = yes ] || return 1
tc qdisc add dev "$DEV" parent 1:10 handle 10: sfq
return 0
echo never
PART
cat > /tmp/shape.d/30-fail <<'PART'
return 7
PART
cat > /tmp/child.sh <<'PART'
#!/bin/bash
echo "child of ${0##*/}: DEV=$DEV RATE=${RATE:-unset} args=$# $*"
tc qdisc add dev eth1 root "${KIND:-pfifo}"
exit $(( $# * 10 ))
PART
chmod 755 /tmp/child.sh
export DEV=eth0
RATE=100
for part in /tmp/shape.d/[0-9]*; do
	. "$part"
	echo "${part##*/}: $?"
done
KIND=sfq /tmp/child.sh a "b c"
echo "child: $?"
echo "${KIND:-not here}"
bash -c 'echo "$DEV ${RATE:-unset} $0 $1"' name word
