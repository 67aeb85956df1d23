#!/bin/bash
# the same with ifconfig
# expect: PS143 4
ifconfig eth0 txqueuelen 20000
