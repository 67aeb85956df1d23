#!/bin/bash
# an object misspelled
# expect: PS001 4
tc qdics add dev eth0 root fq_codel
