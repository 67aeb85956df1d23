DEV ?= eth0
LINE := 10mbit

shape:
	@tc qdisc add dev $(DEV) root handle 1: htb default 20
	tc class add dev $(DEV) parent 1: classid 1:1 htb rate $(LINE)
	tc class add dev $(DEV) parent 1:1 classid 1:10 htb rate 6mbit ceil $(LINE)
	tc class add dev $(DEV) parent 1:1 classid 1:20 htb rate 6mbit ceil $(LINE)
	tc filter add dev $(DEV) parent 1: protocol ip prio 1 u32 match ip dst 10.1.0.0/16 flowid 1:10

clean:
	-tc qdisc del dev $(DEV) root
# expect: PS101 8
# expect: PS250 5
