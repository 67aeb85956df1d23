#!/bin/sh
### BEGIN INIT INFO
# Provides: shaper
### END INIT INFO
PATH=/sbin:/usr/sbin:/bin:/usr/bin
NAME=shaper
PIDFILE=/var/run/$NAME.state
DEVICES="eth0 eth1"

do_start() {
	[ -e $PIDFILE ] && return 1
	for d in $DEVICES; do
		tc qdisc add dev $d root handle 1: prio bands 3 || return 2
		for b in 1 2 3; do
			tc qdisc add dev $d parent 1:$b handle ${b}0: pfifo limit $((b * 50)) || return 2
		done
	done
	echo started > $PIDFILE
}
do_stop() {
	[ -e $PIDFILE ] || return 1
	for d in $DEVICES; do tc qdisc del dev $d root; done
	rm -f $PIDFILE
}
do_status() {
	[ -e $PIDFILE ] && echo "$NAME is running" || { echo "$NAME is stopped"; return 3; }
}
act() {
	case "$1" in
	start) do_start; case "$?" in 0) echo "started" ;; 1) echo "already running" ;; 2) echo "failed" ;; esac ;;
	stop) do_stop; [ "$?" = 2 ] && exit 1 ;;
	restart|force-reload) act stop; act start ;;
	status) do_status ;;
	*) echo "Usage: $0 {start|stop|restart|status}" >&2; return 3 ;;
	esac
}
act status; echo $?
act start
act start
act restart
act status
act frob; echo $?
