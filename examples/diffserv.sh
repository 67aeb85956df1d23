# Four behaviours on eth1: dsmark reads the code point, prio serves strictly, gred tells drop precedences apart.
tc qdisc add dev eth1 root handle 1: dsmark indices 64 set_tc_index
tc filter add dev eth1 parent 1: protocol ip prio 1 handle 46 tcindex mask 0xfc shift 2 classid 1:10
tc filter add dev eth1 parent 1: protocol ip prio 1 handle 10 tcindex classid 1:21
tc filter add dev eth1 parent 1: protocol ip prio 1 handle 12 tcindex classid 1:22
tc filter add dev eth1 parent 1: protocol ip prio 1 handle 14 tcindex classid 1:23
tc filter add dev eth1 parent 1: protocol ip prio 1 handle 0 tcindex classid 1:30
tc filter add dev eth1 parent 1: protocol ip prio 1 handle 1 tcindex classid 1:40
tc qdisc add dev eth1 parent 1: handle 2: prio bands 4 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
tc filter add dev eth1 parent 2: protocol ip prio 1 handle 1 tcindex mask 0xf0 shift 4 classid 2:1
tc filter add dev eth1 parent 2: protocol ip prio 1 handle 2 tcindex classid 2:2
tc filter add dev eth1 parent 2: protocol ip prio 1 handle 3 tcindex classid 2:3
tc filter add dev eth1 parent 2: protocol ip prio 1 handle 4 tcindex classid 2:4
tc qdisc add dev eth1 parent 2:1 handle 10: pfifo limit 20
tc qdisc add dev eth1 parent 2:2 handle 20: gred setup DPs 4 default 3
tc qdisc change dev eth1 parent 2:2 handle 20: gred limit 90KB min 45KB max 80KB burst 60 avpkt 1000 bandwidth 2Mbit DP 1 probability 0.02
tc qdisc change dev eth1 parent 2:2 handle 20: gred limit 90KB min 25KB max 40KB burst 30 avpkt 1000 bandwidth 2Mbit DP 2 probability 0.1
tc qdisc change dev eth1 parent 2:2 handle 20: gred limit 90KB min 10KB max 20KB burst 15 avpkt 1000 bandwidth 2Mbit DP 3 probability 0.5
tc qdisc add dev eth1 parent 2:3 handle 30: pfifo limit 100
tc qdisc add dev eth1 parent 2:4 handle 40: pfifo limit 100
