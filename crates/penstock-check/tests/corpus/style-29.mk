# expect: PS141 8
# expect: PS002 9
DEV ?= eth0
RATE := 2mbit
.PHONY: shape
shape:
	-tc qdisc del dev $(DEV) root
	tc qdisc add dev $(DEV) root handle 1: tbf rate $(RATE) burst 32kb latency 5s
	tc qdisc add dev $(DEV) parent 1:1 handle 10: fq_codle
