#!/bin/sh
# /etc/hotplug.d/iface/30-shape: netifd gives ACTION, INTERFACE and DEVICE.
[ "$ACTION" = ifup ] || exit 0
[ "$INTERFACE" = wan ] || exit 0
UP=$(uci -q get shape.wan.up)
tc qdisc replace dev "$DEVICE" root cake bandwidth "${UP}kbit" nat docsis
logger -t shape "$DEVICE: $UP kbit/s"
