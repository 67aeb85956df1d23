#!/bin/bash
# a table of the family ip marks no IPv6 packet
# expect: PS272 17
nft -f - <<'N'
table ip qos {
  chain post {
    type filter hook postrouting priority mangle;
    oifname "wan" udp dport { 3074, 3478-3480 } meta mark set 0x1
  }
}
N
tc qdisc del dev wan root 2>/dev/null
tc qdisc add dev wan root handle 1: htb default 30
tc class add dev wan parent 1: classid 1:1 htb rate 40mbit
tc class add dev wan parent 1:1 classid 1:10 htb rate 10mbit ceil 40mbit prio 0
tc class add dev wan parent 1:1 classid 1:30 htb rate 30mbit ceil 40mbit prio 1
tc filter add dev wan parent 1: protocol ipv6 prio 3 handle 1 fw flowid 1:10
