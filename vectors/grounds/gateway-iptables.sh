#!/bin/sh
# A gateway: marks by iptables, classes by fw filters.
IPT="iptables -w"
WAN=eth0
LAN=192.168.1.0/24

echo 1 > /proc/sys/net/ipv4/ip_forward
for i in /proc/sys/net/ipv4/conf/*/rp_filter; do
	echo 1 > "$i"
done

for t in filter mangle; do
	$IPT -t $t -F
	$IPT -t $t -X
done
$IPT -P INPUT ACCEPT
$IPT -P FORWARD DROP
$IPT -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
$IPT -A FORWARD -s $LAN -o $WAN -j ACCEPT

$IPT -t mangle -N MYSHAPER-OUT
$IPT -t mangle -I POSTROUTING -o $WAN -j MYSHAPER-OUT
$IPT -t mangle -A MYSHAPER-OUT -p tcp --sport 0:1024 -j MARK --set-mark 23
$IPT -t mangle -A MYSHAPER-OUT -p tcp --dport 0:1024 -j MARK --set-mark 23
$IPT -t mangle -A MYSHAPER-OUT -p icmp -j MARK --set-mark 20
$IPT -t mangle -A MYSHAPER-OUT -p udp -j MARK --set-mark 21
$IPT -t mangle -A MYSHAPER-OUT -p tcp --dport ssh -j MARK --set-mark 22
$IPT -t mangle -A MYSHAPER-OUT -p tcp -m length --length :64 -j MARK --set-mark 21
$IPT -t mangle -A MYSHAPER-OUT -m mark --mark 0 -j MARK --set-mark 26

tc qdisc add dev $WAN root handle 1: htb default 26
tc class add dev $WAN parent 1: classid 1:1 htb rate 800kbit
for c in 20:200:0 21:200:1 22:200:2 23:100:3 26:50:6; do
	id=${c%%:*}; rest=${c#*:}; rate=${rest%:*}; prio=${c##*:}
	tc class add dev $WAN parent 1:1 classid 1:$id htb rate ${rate}kbit ceil 800kbit prio $prio
	tc qdisc add dev $WAN parent 1:$id handle $id: sfq perturb 10
	tc filter add dev $WAN parent 1:0 prio 0 protocol ip handle $id fw flowid 1:$id
done
$IPT -t mangle -L MYSHAPER-OUT -n | tail -n +3 | wc -l
