"""Where tcconfig does not ask tc but the kernel itself (netlink, the user's number), the virtual machine answers as well."""
import os
import subprocess

os.getuid = lambda: 0
try:
    import pyroute2
except ImportError:
    pass
else:

    class Link:
        def __init__(self, name):
            self.name = name

        def get_attr(self, attribute):
            return {"IFLA_IFNAME": self.name}[attribute]

    class IPRoute:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def get_links(self):
            lines = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
            return [Link(line.split(": ")[1].split("@")[0]) for line in lines]

    pyroute2.IPRoute = IPRoute
