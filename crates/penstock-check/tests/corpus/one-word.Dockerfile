# expect: PS012 4
FROM alpine:3.20
RUN apk add --no-cache iproute2
ENTRYPOINT ["tc qdisc replace dev eth0 root netem delay 50ms"]
CMD ["server"]
