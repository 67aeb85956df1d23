#!/bin/bash
# short forms
tc q del dev eth0 root 2>/dev/null
tc q add dev eth0 root fq_codel
