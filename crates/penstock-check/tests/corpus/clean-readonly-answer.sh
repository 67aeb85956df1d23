#!/bin/bash
set -o errexit -o nounset -o pipefail
readonly DEV=$(ip route get 192.0.2.77 | sed -n 's/.* dev \([^ ]*\).*/\1/p')
limit_on() {
    tc qdisc replace dev "$DEV" root handle 1: htb default 1
    tc class replace dev "$DEV" parent 1: classid 1:1 htb rate 100mbit
}
limit_on
