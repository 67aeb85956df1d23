#!/bin/bash
# expect: PS102 8
HOSTS=(r1.mesh r2.mesh r3.mesh)
for h in "${HOSTS[@]}"; do
    ssh -o ConnectTimeout=5 "root@$h" 'sh -s' <<'EOF'
tc qdisc replace dev wlan0 root handle 1: htb default 2
tc class replace dev wlan0 parent 1: classid 1:1 htb rate 24mbit ceil 24mbit
tc class replace dev wlan0 parent 1:1 classid 1:2 htb rate 10mbit ceil 54mbit
tc class replace dev wlan0 parent 1:1 classid 1:3 htb rate 14mbit ceil 24mbit
tc filter replace dev wlan0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:3
EOF
done
