FROM debian:12
RUN apt-get update && apt-get install -y iproute2
RUN echo 'tc qdisc replace dev eth0 root netem delay 50ms' > /start.sh
CMD ["sh", "/start.sh"]
