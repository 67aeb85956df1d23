#!/bin/bash
# record.sh IPERF FOLDER: what iperf 2.2.1 prints between two network namespaces over a line of 20 Mbit/s with queues of 60 ms.
# Each case is NAME.server and NAME.client in FOLDER. Needs root.
set -u
IPERF=$1 OUT=$2
ip netns add pa
ip netns add pb
ip link add pa0 netns pa type veth peer name pb0 netns pb
ip -n pa addr add 10.9.0.1/24 dev pa0
ip -n pb addr add 10.9.0.2/24 dev pb0
for n in pa pb; do
	ip -n $n link set ${n}0 up
	ip -n $n link set lo up
	ip netns exec $n tc qdisc add dev ${n}0 root tbf rate 20mbit burst 20k latency 60ms
done
try() { # NAME SERVER-OPTIONS CLIENT-OPTIONS
	ip netns exec pb stdbuf -oL "$IPERF" -s $2 >"$OUT/$1.server" 2>&1 </dev/null &
	local pid=$!
	sleep 0.3
	ip netns exec pa timeout 20 stdbuf -oL "$IPERF" -c 10.9.0.2 $3 >"$OUT/$1.client" 2>&1 </dev/null
	sleep 0.7
	kill $pid
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
}
try tcp-i "-i 1" "-t 3 -i 1"
try tcp-e "-e -i 1" "-t 3 -e -i 1"
try tcp-P "-i 1" "-t 3 -i 1 -P 2"
try tcp-Pe "-e -i 1" "-t 3 -i 1 -P 2 -e"
try tcp-b "-i 1" "-t 3 -i 1 -b 5m"
try tcp-y "-y C" "-t 3 -i 1 -y C"
try tcp-Py "-y C -i 1" "-t 3 -i 1 -P 2 -y C"
try tcp-m "" "-t 2 -m"
try tcp-w "-w 64K" "-t 2 -w 64K -l 8K -f m"
try udp-i "-u -i 1" "-u -t 3 -i 1 -b 5m"
try udp-e "-u -e -i 1" "-u -t 3 -i 1 -b 5m -e"
try udp-losse "-u -i 1 -e" "-u -t 3 -i 1 -b 30m -e"
try udp-P "-u -i 1" "-u -t 3 -i 1 -b 4m -P 2"
try udp-y "-u -i 1 -y C" "-u -t 3 -i 1 -b 4m -y C"
ip netns exec pa "$IPERF" -c 10.9.0.2 -t 1 >"$OUT/refused.client" 2>&1 </dev/null
# The others were recorded with reno, so that a window is full of segments on their way.
for n in pa pb; do ip netns exec $n sysctl -qw net.ipv4.tcp_congestion_control=reno; done
try tcp-e0 "-e" "-t 2 -e"
try tcp-ef "-e -i 1" "-t 3 -e -i 1 -f B"
try tcp-f "-i 1 -f B" "-t 3 -i 1 -f B"
try udp-e0 "-u -e" "-u -t 2 -b 4m -e"
try udp-f "-u -i 1 -f B" "-u -t 3 -i 1 -b 4m -f B"
try udp-e3 "-u -e -i 1 -l 500" "-u -t 2.5 -i 1 -b 30m -e -l 500"
try tcp-C "" "-t 1 -Z cubic -e -S 0x10 -N -p 5001"
try tcp-n2 "-i 0.5" "-n 1M -i 0.5"
ip netns del pa
ip netns del pb
