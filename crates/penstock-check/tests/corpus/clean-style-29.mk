DEV ?= eth0
RATE := 20mbit
.PHONY: shape clean

shape:
	-tc qdisc del dev $(DEV) root
	tc qdisc add dev $(DEV) root handle 1: tbf rate $(RATE) burst 32kb latency 50ms
	tc qdisc add dev $(DEV) parent 1:1 handle 10: fq_codel

clean:
	-tc qdisc del dev $(DEV) root
