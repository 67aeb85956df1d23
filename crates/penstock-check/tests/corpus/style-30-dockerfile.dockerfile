# expect: PS001 4
FROM alpine:3.20
RUN apk add --no-cache iproute2
ENTRYPOINT ["/bin/sh", "-c", "tc qdisc add dev eth0 root netem delya 50ms && exec \"$@\"", "--"]
