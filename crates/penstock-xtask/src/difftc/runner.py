"""Runs command sequences, each in a network namespace of its own, and writes what came out.

runner.py SEQUENCES.json ANSWERS.jsonl: the first is a list of lists of command lines; the second gets a line a sequence:
[auto, [[exit, stdout, stderr], ...]], auto being the last handle the kernel had chosen for a qdisc before it.
"""
import ctypes, json, os, shlex, subprocess, sys

SETUP = json.loads(os.environ["DIFFTC_SETUP"])
LIBC = ctypes.CDLL(None, use_errno=True)


def run(command, cwd="/tmp"):
    words = shlex.split(command)
    try:
        p = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, cwd=cwd, close_fds=False)
        return [p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")]
    except subprocess.TimeoutExpired:
        return [-1, "", "timed out"]
    except OSError as e:
        return [127, "", str(e)]


def one(sequence, out):
    # A network namespace, and a mount namespace to have its devices under /sys.
    if LIBC.unshare(0x40000000 | 0x00020000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run("mount --make-rprivate /")
    run("mount -t sysfs sysfs /sys")
    run("mount -t bpf bpf /sys/fs/bpf")
    # Without IPv6 a device that is up sends nothing of its own: a filter that redirects to where it stands would go round
    # with the kernel's own packets for ever.
    for which in ("all", "default"):
        path = f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6"
        if os.path.exists(path):
            with open(path, "w") as f:
                f.write("1")
    for command in SETUP:
        rc = run(command)
        if rc[0] != 0:
            raise RuntimeError(f"{command}: {rc[2]}")
    run("tc qdisc add dev d1 root pfifo")
    auto = run("tc qdisc show dev d1")[1].split()[2].rstrip(":")
    run("tc qdisc del dev d1 root")
    answers = [run(c) for c in sequence]
    out.write(json.dumps([int(auto, 16), answers]) + "\n")
    out.flush()


def main():
    sequences = json.load(open(sys.argv[1]))
    out = open(sys.argv[2], "w")
    for sequence in sequences:
        pid = os.fork()
        if pid == 0:
            try:
                one(sequence, out)
                os._exit(0)
            except BaseException as e:  # a child never goes on in the parent's loop
                print(e, file=sys.stderr)
                os._exit(1)
        if os.waitpid(pid, 0)[1] != 0:
            sys.exit(1)


main()
