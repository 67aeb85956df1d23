#!/bin/sh
set -e
DEV=eth0
nft -f - <<'N'
table inet shaper
delete table inet shaper
table inet shaper {
  chain out {
    type filter hook postrouting priority mangle; policy accept;
    oifname "eth0" tcp dport { 22, 2222 } meta mark set 0x10
    oifname "eth0" udp port 51820 meta mark set 0x20
  }
}
N
tc qdisc replace dev $DEV root handle 1: htb default 30
tc class replace dev $DEV parent 1: classid 1:1 htb rate 50mbit
tc class replace dev $DEV parent 1:1 classid 1:10 htb rate 5mbit ceil 50mbit prio 0
tc class replace dev $DEV parent 1:1 classid 1:20 htb rate 25mbit ceil 50mbit prio 1
tc class replace dev $DEV parent 1:1 classid 1:30 htb rate 20mbit ceil 50mbit prio 2
tc filter replace dev $DEV parent 1: protocol all prio 1 handle 0x10 fw classid 1:10
tc filter replace dev $DEV parent 1: protocol all prio 1 handle 0x20 fw classid 1:20
# expect: PS013 11
# (what waits for its marks has its cause there)
# (what waits for its marks has its cause there)
