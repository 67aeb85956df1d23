# As the document prints it, on the card that is eth1 here.
# the document, lines 78-81; on the Linux router, needs a classful qdisc 1: with classes 1:2 and 1:3
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip precedence \
  0x00 0xfc flowid 1:2
tc filter add dev eth1 parent 1:0 protocol ip prio 100 u32 match ip precedence \
  0x20 0xfc flowid 1:3
