"""The module as somebody uses it. Run: cargo xtask python"""

import doctest
import signal
import threading
import time
import unittest

import penstock

LINE = """
duration = "2s"
[host.a]
eth0 = "10.0.0.1/24"
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
delay = "5ms"
[[flow]]
name = "bulk"
from = "a"
to = "b"
load = "greedy"
"""


class Runs(unittest.TestCase):
    def test_a_run_has_figures_series_and_a_report(self):
        run = penstock.run(LINE, seed=3)
        self.assertEqual(run.record["seed"], 3)
        self.assertTrue(8e6 < run.figures["bulk goodput"] < 10e6)
        self.assertEqual(run.figure("bulk goodput"), run.figures["bulk goodput"])
        self.assertEqual(run.series_parquet()[:4], b"PAR1")
        self.assertTrue(run.report().lower().startswith("<!doctype html>"))
        self.assertIn("<iframe", run._repr_html_())
        self.assertEqual(run.record, penstock.run(LINE, seed=3).record)

    def test_what_is_wrong_has_a_place(self):
        with self.assertRaises(penstock.PenstockError) as caught:
            penstock.run(LINE.replace("rate = ", "rte = "))
        fault = caught.exception.faults[0]
        self.assertEqual((fault["file"], fault["line"], fault["column"]), ("text", 9, 1))
        self.assertIn('did you mean "rate"?', fault["help"])
        with self.assertRaises(penstock.PenstockError):
            penstock.run("/no/such/file.toml")
        with self.assertRaises(TypeError):
            penstock.run(5)
        with self.assertRaises(penstock.PenstockError):
            penstock.run(LINE).figure("bulk goodputt")

    def test_a_signal_ends_a_run(self):
        def interrupt():
            time.sleep(0.5)
            signal.raise_signal(signal.SIGINT)

        # Where the tests run in the background of a script, the signal is ignored and Python asks for none.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        long = LINE.replace('"2s"', '"80000s"')
        threading.Thread(target=interrupt).start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            penstock.run(long)
        print(f"ended after {time.monotonic() - begun:.1f} s")

    def test_the_lock_is_let_go(self):
        counted = 0
        done = threading.Event()

        def work():
            penstock.run(LINE.replace('"2s"', '"60s"'))
            done.set()

        threading.Thread(target=work).start()
        while not done.is_set():
            counted += 1
            time.sleep(0.001)
        self.assertGreater(counted, 5)

    def test_a_script_is_checked(self):
        found = penstock.check("tc qdisc add dev eth0 root tbf rate 1mbit\n")
        self.assertTrue(any("burst" in f["message"] for f in found), found)
        self.assertEqual(penstock.check("tc qdisc add dev eth0 root fq_codel\n"), [])

    def test_every_example_of_the_docstrings_runs(self):
        from penstock import _engines, _experiment, _machine, _qdisc, _scripts, _sweep, _tables, _traffic

        for module in (penstock, _engines, _experiment, _machine, _qdisc, _scripts, _sweep, _tables, _traffic):
            result = doctest.testmod(module)
            self.assertEqual(result.failed, 0, module.__name__)
            self.assertGreater(result.attempted, 0, module.__name__)

    def test_what_is_public_has_a_docstring(self):
        for name in penstock.__all__:
            if name != "__version__":
                self.assertTrue(getattr(penstock, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
