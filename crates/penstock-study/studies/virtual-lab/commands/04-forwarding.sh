# on U4
sudo sysctl -w net.ipv4.ip_forward=1
