# fq
tc qdisc add dev eth0 root fq
