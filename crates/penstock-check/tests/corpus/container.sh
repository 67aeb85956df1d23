#!/bin/bash
# limits of two containers and of a machine
for box in web db; do
    docker exec -u root $box tc qdisc del dev eth0 root 2>/dev/null
    docker exec -u root $box tc qdisc add dev eth0 root handle 1: htb default 10
    docker exec -u root $box tc class add dev eth0 parent 1: classid 1:20 htb rate 10mbit
done
docker exec web sh -c "tc qdisc add dev eth1 root tbf rate 1mbit burst 10 latency 50ms"
ssh root@gate tc qdisc add dev ppp0 root handle 1: htb defualt 10
nsenter -t 4711 -n tc qdisc add dev eth0 root sfq
# expect: PS107 5
# expect: PS121 8
# expect: PS001 9
# expect: PS146 10
