#!/bin/sh
# expect: PS003 8
# (what waits for its marks has its cause there)
iptables-restore -n <<'RULES'
*mangle
:POSTROUTING ACCEPT [0:0]
:VOICE - [0:0]
-A POSTROUTING -o eth0 -p udp -m udp --dport 5060 -j VOICES
-A VOICE -j MARK --set-xmark 0x5/0xffffffff
COMMIT
RULES
tc qdisc replace dev eth0 root handle 1: prio
tc filter replace dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:1
