# a wrapper puts one word before each command
# expect: PS180 11
# expect: PS196 11
import subprocess
DEV = "eth0"
def tc(cmd):
    subprocess.run(f"tc {cmd}", shell=True, check=True)
tc(f"qdisc replace dev {DEV} root handle 1: htb default 20")
for i, rate in enumerate([10, 20], start=1):
    tc(f"class add dev {DEV} parent 1: classid 1:{i}0 htb rate {rate}mbit")
    tc(f"filter add dev {DEV} parent 1: protocol ip prio 1 u32 match ip src 10.0.{i}.0/16 flowid 1:{i}0")
