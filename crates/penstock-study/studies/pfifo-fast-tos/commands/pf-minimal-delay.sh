# the article, lines 84 and 105; on the client, both at (nearly) the same time, the first one first
sudo iperf3 -c 192.168.1.173 -u -b 1G -p 5201
sudo iperf3 -c 192.168.1.173 -u -b 1G -p 5202 -S 16
