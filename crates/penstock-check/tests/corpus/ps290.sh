# two queues and nothing to tell them apart
# expect: PS290 3
tc qdisc add dev eth0 root gred setup DPs 3 default 2
tc qdisc change dev eth0 root gred limit 60KB min 15KB max 25KB burst 20 avpkt 1000 bandwidth 10Mbit DP 1 probability 0.02 prio 8
tc qdisc change dev eth0 root gred limit 60KB min 15KB max 45KB burst 20 avpkt 1000 bandwidth 10Mbit DP 2 probability 0.02 prio 8
