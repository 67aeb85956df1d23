# the same kinds as they are meant
tc qdisc add dev eth0 root netem delay 20ms 5ms
tc qdisc add dev eth1 root netem rate 1mbit delay 20ms limit 30
tc qdisc add dev eth2 root handle 1: hfsc default 20
tc class add dev eth2 parent 1: classid 1:1 hfsc ls m2 18mbit ul m2 18mbit
tc class add dev eth2 parent 1:1 classid 1:10 hfsc rt m1 5mbit d 10ms m2 1mbit ls m2 6mbit
tc class add dev eth2 parent 1:1 classid 1:20 hfsc ls m2 12mbit
tc filter add dev eth2 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff match ip protocol 17 0xff flowid 1:10
tc qdisc add dev eth3 root handle 1: drr
tc class add dev eth3 parent 1: classid 1:10 drr quantum 4500
tc class add dev eth3 parent 1: classid 1:20 drr quantum 1500
tc filter add dev eth3 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:10
tc filter add dev eth3 parent 1: protocol all prio 2 matchall classid 1:20
tc qdisc add dev eth4 root handle 1: ets bands 4 strict 2 quanta 4500 1500 priomap 3 3 3 3 2 2 1 0 3 3 3 3 3 3 3 3
tc qdisc add dev eth5 root choke limit 120 min 30 max 90 avpkt 1000 burst 55 bandwidth 10mbit
tc qdisc add dev eth6 root gred setup DPs 3 default 2
tc qdisc change dev eth6 root gred limit 60KB min 15KB max 45KB burst 20 avpkt 1000 bandwidth 10Mbit DP 2 probability 0.02 prio 8
tc qdisc add dev eth7 root sfb target 20 max 25
tc qdisc add dev eth8 root tbf rate 10mbit burst 20kb latency 50ms peakrate 12mbit mtu 1514
tc qdisc add dev eth9 root plug limit 1000000
tc qdisc change dev eth9 root plug release_indefinite
