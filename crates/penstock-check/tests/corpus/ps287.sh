# strict bands that nothing comes to
# expect: PS287 3
tc qdisc add dev eth0 root handle 1: ets bands 4 strict 2 quanta 4500 1500
