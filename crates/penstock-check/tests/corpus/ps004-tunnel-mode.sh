#!/bin/sh
# expect: PS004 3
ip tunnel add tun1 mode grex remote 203.0.113.9 local 198.51.100.2 ttl 64
