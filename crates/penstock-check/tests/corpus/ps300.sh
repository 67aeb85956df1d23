# a positive sendslope
# expect: PS300 3
tc qdisc add dev eth0 root cbs idleslope 20000 sendslope 980000 hicredit 30 locredit -1470
