# The labels of the mixed tests; best effort goes to 192.129.4.0/24.
ipchains -A output -d 192.129.1.0/24 -m 2
ipchains -A output -d 192.129.2.0/24 -m 3
ipchains -A output -d 192.129.4.0/24 -m 4
