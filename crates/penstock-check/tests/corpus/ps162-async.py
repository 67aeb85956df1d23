# a program's words as arguments of asyncio
# expect: PS162 5
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("tc", "qdisc", "replace", "dev", "eth0", "root", "netem", "delay", "100")
    await p.wait()
asyncio.run(main())
