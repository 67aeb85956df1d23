DEV ?= eth0
.PHONY: slow fast
slow:
	sudo tc qdisc replace dev $(DEV) root netem delay 40ms limit 4000
fast:
	sudo tc qdisc del dev $(DEV) root || true
