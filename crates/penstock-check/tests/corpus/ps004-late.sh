#!/bin/bash
# set up before it is made
# expect: PS004 4
ip link set ifb0 up
ip link add ifb0 type ifb
