"""driver.py PROBE DIR: run the probe over every DIR/*.spec.json inside one boot of the kernel.

The probe (qdisc_order.py) is run anew in a forked child for each specification: it makes its own network namespace and
starts with the same state as every other; only the start of the interpreter is shared. Each child starts at the same
distance from a tick of the clock as it would alone in a fresh boot, so that what depends on that (the moment of a
blocked line's release, tokens that gather while commands run) is the same too. Beside each NAME.spec.json appears
NAME.out.json, or NAME.err with what the probe said."""
import ctypes, ctypes.util, errno, json, os, re, shlex, socket, struct, subprocess, sys, time  # noqa: F401 (for the children)

TICK = 10_000_000
START = 1_746_669  # ns after a tick: where a fresh boot's script stands

def wait_for_phase():
    libc = ctypes.CDLL(None, use_errno=True)
    class Timespec(ctypes.Structure):
        _fields_ = [('s', ctypes.c_long), ('n', ctypes.c_long)]
    libc.prctl(29, 1, 0, 0, 0)
    t = (time.monotonic_ns() // TICK + 1) * TICK + START
    libc.clock_nanosleep(1, 1, ctypes.byref(Timespec(*divmod(t, 10**9))), None)

probe, folder = sys.argv[1:3]
code = compile(open(probe).read(), probe, 'exec')
for name in sorted(os.listdir(folder)):
    if not name.endswith('.spec.json'):
        continue
    base = os.path.join(folder, name[:-len('.spec.json')])
    pid = os.fork()
    if pid == 0:
        sys.argv = [probe, base + '.spec.json', base + '.out.json']
        status, err = 0, ''
        try:
            wait_for_phase()
            exec(code, {'__name__': '__main__'})
        except SystemExit as e:
            if e.code not in (None, 0):
                status, err = 1, str(e.code)
        except BaseException as e:
            status, err = 1, f'{type(e).__name__}: {e}'
        if status:
            open(base + '.err', 'w').write(err + '\n')
        os._exit(status)
    os.waitpid(pid, 0)
