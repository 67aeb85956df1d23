# CMD as a list
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends iproute2 iperf3 \
 && rm -rf /var/lib/apt/lists/*
COPY entry.sh /
CMD ["sh", "-c", "tc qdisc replace dev eth0 root netem delay 50ms && exec iperf3 -s"]
