#!/bin/sh
# Sets of every type, as people write them.
# penstock-check: clean
ipset create banned hash:ip timeout 3600 maxelem 100000 -exist
ipset -exist create lan hash:net family inet hashsize 1024
ipset -N trusted nethash
ipset -N ports portmap --from 1 --to 1024
ipset create v6 hash:net family inet6 counters comment
ipset create web hash:ip,port
ipset create trio hash:ip,port,ip
ipset create triple hash:ip,port,net
ipset create pairs hash:net,net
ipset create dev hash:net,iface
ipset create macs hash:mac
ipset create ipmac hash:ip,mac
ipset create marked hash:ip,mark markmask 0xff
ipset create range bitmap:ip range 10.0.0.0/24
ipset create bmac bitmap:ip,mac range 192.168.0.0/16
ipset create bport bitmap:port range 1-1024
ipset create all list:set size 16
ipset create netport hash:net,port
ipset create npn hash:net,port,net
ipset create skb hash:ip skbinfo
ipset create force hash:ip forceadd maxelem 10
ipset create mask hash:ip netmask 24
ipset add banned 192.0.2.1
ipset add banned 192.0.2.2 timeout 0
ipset add banned 192.0.2.4-192.0.2.9
ipset -! add banned 192.0.2.1
ipset -A trusted 10.0.0.0/8
ipset add lan 10.0.0.0/8
ipset add lan 10.1.0.0/16 nomatch
ipset add v6 2001:db8::/32 packets 1 bytes 60 comment "doc prefix"
ipset add web 10.0.0.1,80
ipset add web 10.0.0.1,udp:53
ipset add web 10.0.2.0/30,tcp:80-90
ipset add web 10.0.0.1,icmp:ping
ipset add trio 10.0.0.1,80,10.0.0.2
ipset add triple 10.0.0.1,80,10.0.1.0/24
ipset add pairs 10.0.0.0/24,10.1.0.0/24
ipset add dev 10.0.0.0/24,eth0
ipset add macs 02:00:00:00:00:01
ipset add ipmac 10.0.0.1,02:00:00:00:00:01
ipset add marked 10.0.0.1,0x11
ipset add range 10.0.0.7
ipset add bmac 192.168.1.1,02:00:00:00:00:01
ipset add bport 80-90
ipset add all lan
ipset add all banned before lan
ipset add netport 10.0.0.0/8,tcp:443
ipset add npn 10.0.0.0/8,443,192.0.2.0/24
ipset add skb 10.0.0.1 skbmark 0x1/0xff skbprio 1:10 skbqueue 3
ipset del banned 192.0.2.9
ipset test lan 10.2.0.1
ipset -T lan 10.2.0.1
ipset list
ipset list -n
ipset -L banned -t
ipset save > /etc/ipset.conf
ipset create fresh hash:ip timeout 3600
ipset swap fresh banned
ipset destroy fresh
ipset rename mask masked
ipset flush web
ipset version
ipset restore <<END
create given hash:ip family inet hashsize 1024 maxelem 65536
add given 10.0.0.1
END
iptables -A INPUT -m set --match-set banned src -j DROP
iptables -A INPUT -m set ! --match-set lan src -p tcp --dport 22 -j DROP
iptables -A FORWARD -m set --match-set web dst,dst -j ACCEPT
iptables -A FORWARD -m set --match-set dev src,src --return-nomatch -j ACCEPT
iptables -A FORWARD -m set --match-set given dst --packets-gt 10 -j ACCEPT
ip6tables -A INPUT -m set --match-set v6 src ! --update-counters -j ACCEPT
iptables -A INPUT -p tcp --dport 23 -j SET --add-set banned src --exist --timeout 600
iptables -A INPUT -p tcp --dport 24 -j SET --del-set banned src
iptables -t mangle -A PREROUTING -j SET --map-set skb src --map-mark
iptables -t raw -A PREROUTING -m rpfilter --invert -j DROP
iptables -t mangle -A PREROUTING -m rpfilter --loose --validmark --accept-local -j ACCEPT
iptables -t raw -A PREROUTING -i eth1 -j CT --zone 1
iptables -t raw -A PREROUTING -p udp --dport 53 -j CT --notrack
iptables -A FORWARD -m policy --dir in --pol none -j ACCEPT
iptables -t mangle -A POSTROUTING -p udp --dport 68 -j CHECKSUM --checksum-fill
iptables -A INPUT -m addrtype --dst-type LOCAL --limit-iface-in -j ACCEPT
nft add table inet guard
nft add chain inet guard pre '{ type filter hook prerouting priority -300; }'
nft add rule inet guard pre fib saddr . mark . iif oif missing drop
nft add rule inet guard pre fib daddr type local accept
nft add rule inet guard pre ct zone set 3
nft add rule inet guard pre ct status dnat accept
nft add rule inet guard pre icmpv6 type . icmpv6 code '{ packet-too-big . no-route }' accept
