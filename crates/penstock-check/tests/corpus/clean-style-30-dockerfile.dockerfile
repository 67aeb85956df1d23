FROM alpine:3.20
RUN apk add --no-cache iproute2 iptables
ENV DELAY=50ms LOSS=0.1%
COPY run.sh /run.sh
ENTRYPOINT ["/bin/sh", "-c", "tc qdisc add dev eth0 root netem delay 50ms loss 0.1% limit 2000 && exec \"$@\"", "--"]
CMD ["/run.sh"]
