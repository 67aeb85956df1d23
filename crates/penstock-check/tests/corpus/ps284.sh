# a first slope of ten microseconds
# expect: PS284 5
tc qdisc add dev eth0 root handle 1: hfsc default 20
tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 18mbit ul m2 18mbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m1 5mbit d 10 m2 1mbit ls m2 6mbit
tc class add dev eth0 parent 1:1 classid 1:20 hfsc ls m2 12mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff match ip protocol 17 0xff flowid 1:10
