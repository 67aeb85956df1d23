#!/bin/bash
# In the manner of the kernel's own tests: counts, a log of each check, a clean-up in a trap.
ksft_pass=0
ksft_fail=1
ret=$ksft_pass
nr=0

cleanup() {
	pre=$?
	tc qdisc del dev eth0 root 2>/dev/null
	tc qdisc del dev eth0 clsact 2>/dev/null
	ip link del dummy5 2>/dev/null
	exit $pre
}
trap cleanup EXIT

check_err() {
	local err=$1 msg=$2
	if [[ $RET -eq 0 && $err -ne 0 ]]; then
		RET=$err
		retmsg=$msg
	fi
}
check_fail() { local err=$1; [ "$err" -ne 0 ]; check_err $? "$2"; }
log_test() {
	((nr++))
	if [[ $RET -ne 0 ]]; then
		printf "TEST: %-50s [FAIL]\n\t%s\n" "$1" "$retmsg"
		ret=$ksft_fail
	else
		printf "TEST: %-50s  [ OK ]\n" "$1"
	fi
}

test_add_del() {
	RET=0
	tc qdisc add dev eth0 root handle 1: prio
	check_err $? "cannot add prio"
	tc qdisc add dev eth0 root handle 1: prio 2>/dev/null
	check_fail $? "added prio twice"
	tc qdisc del dev eth0 root
	check_err $? "cannot delete prio"
	log_test "add and delete"
}
test_filter() {
	RET=0
	tc qdisc add dev eth0 clsact
	for proto in ip ipv6 all; do
		tc filter add dev eth0 ingress protocol $proto pref 1 handle 101 flower skip_hw action drop
		check_err $? "protocol $proto"
		tc filter show dev eth0 ingress | grep -q "pref 1 flower"
		check_err $? "$proto is not shown"
		tc filter del dev eth0 ingress protocol $proto pref 1 handle 101 flower
		check_err $?
	done
	log_test "filters of clsact"
}
test_dummy() {
	RET=0
	ip link add name dummy5 type dummy
	check_err $?
	ip link set dev dummy5 up
	[[ $(cat /sys/class/net/dummy5/operstate) == unknown ]]
	check_err $? "operstate"
	tc qdisc add dev dummy5 root netem delay 10ms
	check_err $?
	log_test "a dummy"
}
ALL_TESTS="
	test_add_del
	test_filter
	test_dummy
"
for current_test in ${TESTS:-$ALL_TESTS}; do
	$current_test
done
echo "$nr tests"
exit $ret
