# expect: PS015 8
DEV ?= eth0
RATE ?= 10mbit

up:
	tc qdisc replace dev $(DEV) root handle 1: htb default 10
	tc class replace dev $(DEV) parent 1: classid 1:10 htb rate $(RATE)
	tc qdisc replace dev $DEV parent 1:10 handle 10: fq_codel
	for d in eth1 eth2; do tc qdisc replace dev $$d root fq_codel; done
