#!/bin/sh
dev=eth3
tc qdisc del dev $dev root 2>/dev/null
{
    printf 'qdisc add dev %s root handle 1: htb default 0x30\n' $dev
    printf 'class add dev %s parent 1: classid 1:1 htb rate 80mbit ceil 80mbit\n' $dev
    printf 'class add dev %s parent 1:1 classid 1:10 htb rate 30mbit ceil 80mbit\n' $dev
    printf 'class add dev %s parent 1:1 classid 1:30 htb rate 50mbit ceil 80mbit\n' $dev
    printf 'qdisc add dev %s parent 1:10 sfq perturb 10\n' $dev
    printf 'qdisc add dev %s parent 1:30 sfq perturb 10\n' $dev
    printf 'filter add dev %s parent 1: prio 1 protocol ip u32 match ip dscp 46 0x3f flowid 1:10\n' $dev | sed 's/dscp 46 0x3f/dsfield 0xb8 0xfc/'
} | tc -b -
