# a slow line with netem's default limit
# expect: PS282 3
tc qdisc add dev eth0 root netem rate 1mbit delay 20ms
