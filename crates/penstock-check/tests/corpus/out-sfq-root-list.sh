# sfq as root, typed
# expect: PS146 3
tc qdisc add dev wlan0 root sfq
