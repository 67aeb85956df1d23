"""driver.py PROBE DIR: run the probe over every DIR/*.spec.json inside one boot of the kernel.

The probe (qdisc_order.py) is imported anew in a forked child for each specification, which makes its own network
namespace and then starts with the same state as every other; only the start of the interpreter is shared. Beside each
NAME.spec.json appears NAME.out.json, or NAME.err with what the probe said."""
import ctypes, ctypes.util, json, os, re, runpy, shlex, socket, struct, subprocess, sys, time  # for the children  # noqa: F401

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
