#!/bin/bash
# expect: PS334 5
docker run -d --name web --network lab nginx
docker run -d --name probe --cap-add NET_ADMIN netshoot
docker exec web tc qdisc replace dev eth0 root netem delay 50ms limit 5000
docker exec probe tc qdisc replace dev eth0 root netem delay 50ms limit 5000
docker exec --privileged web tc qdisc show
