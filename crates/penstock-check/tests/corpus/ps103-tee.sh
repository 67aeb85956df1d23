#!/bin/bash
# expect: PS103 8
DEV=ens3
sudo tee /etc/networkd-dispatcher/routable.d/50-shape >/dev/null <<EOF
#!/bin/sh
[ "\$IFACE" = "$DEV" ] || exit 0
tc qdisc replace dev $DEV root handle 1: htb default 10
tc class replace dev $DEV parent 1: classid 1:10 htb rate 40mbit ceil 4mbit
EOF
sudo chmod +x /etc/networkd-dispatcher/routable.d/50-shape
