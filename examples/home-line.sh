# Shaping for a line of 4 Mbit/s up, on the router's eth0: a little below the line, so that the queue is here
# and not in the modem.
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1:  classid 1:1  htb rate 3700kbit ceil 3700kbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 400kbit  ceil 3700kbit prio 0   # calls
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1500kbit ceil 3700kbit prio 1   # answers, acknowledgements, pings
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1800kbit ceil 3700kbit prio 2   # everything else
tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 50
tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10
tc qdisc add dev eth0 parent 1:30 handle 30: sfq perturb 10

# Calls are marked by the phone (DSCP EF). Pings, and TCP segments without data, go before bulk.
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 \
    match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 flowid 1:20
