#!/bin/bash
# A gateway's own keys and files, a peer with a name, and a shaper on the tunnel.
set -e
umask 077
ip link add dev wg0 type wireguard
wg genkey | tee /etc/wireguard/private.key | wg pubkey > /etc/wireguard/public.key
wg set wg0 listen-port 51820 private-key /etc/wireguard/private.key
wg set wg0 peer "$1" allowed-ips 10.8.0.2/32 endpoint vpn.example.com:51820
wg addconf wg0 /etc/wireguard/more.conf
ip address add dev wg0 10.8.0.1/24
ip link set up dev wg0
tc qdisc replace dev wg0 root cake bandwidth 20mbit
wg-quick up wg1
tc qdisc replace dev wg1 root fq_codel
