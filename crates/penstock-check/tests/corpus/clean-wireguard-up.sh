#!/bin/bash
wg-quick up wg0
tc qdisc add dev wg0 root fq_codel
