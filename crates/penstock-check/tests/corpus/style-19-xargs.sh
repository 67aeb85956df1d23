#!/bin/sh
# expect: PS002 3
printf '%s\n' eth0 eth1 | xargs -I{} tc qdisc replace dev {} root fq_codell
echo "qdisc show dev eth0" | xargs tc
