# an image keeps no qdisc
# expect: PS340 5
FROM debian:12
RUN apt-get update && apt-get install -y iproute2
RUN tc qdisc replace dev eth0 root netem delay 50ms
CMD ["sleep", "infinity"]
