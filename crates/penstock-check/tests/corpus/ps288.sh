# RED's numbers given to choke
# expect: PS288 3
tc qdisc add dev eth0 root choke limit 60000 bandwidth 10mbit
