# the document, lines 71-72; on Linux router of document 000 (output chain)
ipchains -A output -d 192.129.1.0/24 -m 2
ipchains -A output -d 192.129.2.0/24 -m 3
