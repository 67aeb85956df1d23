#!/bin/bash
# lo
# expect: PS237 4
tc qdisc replace dev lo root fq_codel
