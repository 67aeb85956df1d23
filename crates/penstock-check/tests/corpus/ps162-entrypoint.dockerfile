# words of a list in a Dockerfile
# expect: PS162 5
FROM alpine
RUN apk add iproute2
ENTRYPOINT ["sh", "-c", "tc qdisc add dev eth0 root netem delay 100 && exec app"]
