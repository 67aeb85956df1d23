"""Tables, series, the builder, the machine, exact packets."""

import numpy
import pyarrow
import pytest

import penstock
from test_penstock import LINE

SHAPER = """tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 2mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
"""


def test_findings_and_parts_are_tables():
    found = penstock.check("tc qdisc add dev eth0 root tbf rate 1mbit\n").arrow()
    assert isinstance(found, pyarrow.Table)
    assert found["code"].to_pylist() == ["PS001"] and found["line"].to_pylist() == [1]
    parts = penstock.partition(SHAPER, dev="eth0")
    assert {"1:10", "1:20"} <= set(parts.arrow()["to"].to_pylist())
    assert parts._repr_html_().startswith("<table><tr><th>")
    differences = penstock.diff(SHAPER, SHAPER.replace("2mbit", "3mbit"), dev="eth0")
    assert [row["object"] for row in differences if "ceil" in row["text"]] == ["class 1:20"]
    assert penstock.check("tc qdisc add dev eth0 root fq_codel\n").arrow().num_rows == 0


def test_a_difference_has_the_same_columns_whatever_it_is():
    other = SHAPER.replace("dport 22 0xffff", "dport 80 0xffff").replace("rate 2mbit", "rate 3mbit")
    other += "tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\nip link set dev eth0 mtu 1400\n"
    other += "tc qdisc add dev eth0 handle ffff: ingress\n"
    other += "tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip src 10.0.0.0/9 action drop\n"
    rows = penstock.diff(SHAPER, other, dev="eth0")
    assert len({tuple(row) for row in rows}) == 1
    moved = {row["ranges"]["dport"][0]: (row["before"], row["after"]) for row in rows if row["ranges"] and "dport" in row["ranges"]}
    assert moved == {(22, 22): ("1:10", "1:20"), (80, 80): ("1:20", "1:10")}
    arriving = [row for row in rows if row["hook"] == "arriving" and row["traffic"]]
    assert [row["ranges"]["src"] for row in arriving] == [[("10.0.0.0", "10.127.255.255")]]
    objects = [(row["object"], row["before"], row["after"]) for row in rows if row["object"]]
    assert ("class 1:20", "rate 2mbit ceil 2mbit", "rate 3mbit ceil 3mbit") in objects
    assert ("class 1:30", None, "new") in objects and ("device", "mtu 1500", "mtu 1400") in objects
    # Each set's example is in it: it goes where the row says.
    for row in rows:
        if row["traffic"] and row["hook"] == "leaving":
            assert row["exact"] and row["example"]
            for script, place in ((SHAPER, row["before"]), (other, row["after"])):
                assert penstock.explain(script, row["example"], dev="eth0")["class"] == place
    table = rows.arrow()
    assert table.column_names == list(rows[0]) and table.num_rows == len(rows)
    assert set(table["device"].to_pylist()) == {"eth0"}
    frame = rows.pandas()
    assert len(frame[frame.traffic.notna()]) == sum(1 for row in rows if row["traffic"])
    polars = pytest.importorskip("polars")
    assert rows.polars().filter(polars.col("hook") == "arriving").height >= 1


@pytest.mark.parametrize(
    "line, of",
    [
        ("ifb0: root: limit 5 -> limit 7", ("ifb0", "leaving", "root", None, "limit 5", "limit 7", True)),
        ("class 1:30: gone", ("eth0", "leaving", "class 1:30", None, None, "gone", True)),
        ("filter at ingress prio 1: a -> none", ("eth0", "arriving", "filter at ingress prio 1", None, "a", "none", True)),
        ("command: none -> tc chain add", ("eth0", None, "command", None, "none", "tc chain add", True)),
        ("everything: none -> 1:10", ("eth0", "leaving", None, "everything", "none", "1:10", True)),
        ("within ip, mark 3: 1:1 -> 1:2   (perhaps)", ("eth0", "leaving", None, "ip, mark 3", "1:1", "1:2", False)),
        ("and more", ("eth0", "leaving", "more", None, None, None, False)),
        ("eth0: a puts no qdisc on it, b does", ("eth0", "leaving", "device", None, None, "a puts no qdisc on it, b does", True)),
    ],
)
def test_lines_of_differences_in_columns(line, of):
    from penstock._traffic import difference

    row = difference(line, "eth0")
    assert tuple(row[c] for c in ("device", "hook", "object", "traffic", "before", "after", "exact")) == of
    assert row["text"] == line and row["example"] is None


def test_conditions_are_ranges():
    from penstock._traffic import ranges

    fields, other = ranges("ipv6, src 2001:db8::/33, tcp, sport 1024-65535, dport 22,80,443 and 3 more, len below 100, vlan 7, in eth1")
    assert fields == {
        "ethertype": [(0x86DD, 0x86DD)],
        "src": [("2001:db8::", "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff")],
        "protocol": [(6, 6)],
        "sport": [(1024, 65535)],
        "len": [(0, 99)],
        "vlan": [(7, 7)],
    }
    # A list that is cut off is no range of the field.
    assert other == ["dport 22,80,443 and 3 more", "in eth1"]
    assert ranges("ip, dst 10.0.0.0/24 or dst 10.0.2.0/23, not [set a, b], mark 0x1/0x5 without udp or icmp") == (
        {"ethertype": [(0x800, 0x800)], "dst": [("10.0.0.0", "10.0.0.255"), ("10.0.2.0", "10.0.3.255")]},
        ["not [set a, b]", "mark 0x1/0x5", "without udp or icmp"],
    )
    assert ranges("ip, dport 1 and udp or dport 2 and tcp")[1] == ["dport 1 and udp or dport 2 and tcp"]


def test_a_table_without_its_library_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'penstock\[pandas\]'"):
        penstock.partition(SHAPER, dev="eth0").pandas()


def test_the_series_are_an_arrow_table_without_a_copy():
    series = penstock.run(LINE).series
    assert series.column_names == ["time_s", "host", "object", "metric", "value"]
    assert series.num_rows == len(series) > 100
    table = pyarrow.table(series)
    assert table.column_names == series.column_names and table.num_rows == series.num_rows
    # The same memory, as often as somebody asks.
    of = lambda t: t["value"].chunk(0).buffers()[1].address
    assert of(table) == of(pyarrow.table(series)) == of(series.arrow())
    assert table["value"].type == pyarrow.float64() and table["metric"].type == pyarrow.string()
    rates = set(table["metric"].to_pylist())
    assert "goodput_bit_s" in rates


def test_the_series_are_what_the_parquet_file_has():
    run = penstock.run(LINE)
    import io
    import pyarrow.parquet

    other = pyarrow.parquet.read_table(io.BytesIO(run.series_parquet()))
    assert run.series.arrow().to_pylist() == other.to_pylist()


def test_the_series_are_tables_of_other_libraries():
    series = penstock.run(LINE).series
    pandas, polars, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    frame = series.pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == len(series)
    goodput = frame[frame.metric == "goodput_bit_s"].value.mean()
    assert polars.DataFrame(series).shape == (len(series), 5)
    assert series.polars().filter(polars.col("metric") == "goodput_bit_s")["value"].mean() == pytest.approx(goodput)
    said = duckdb.sql("select avg(value) from series where metric = 'goodput_bit_s'").fetchall()
    assert said[0][0] == pytest.approx(goodput)


def test_a_chart_is_a_picture(tmp_path):
    run = penstock.run(LINE)
    chart = run.chart("goodput_bit_s", object="bulk")
    assert chart.svg.startswith("<svg") and "Mbit/s" in chart.svg and chart._repr_svg_() == chart.svg
    chart.save(tmp_path / "goodput.svg")
    assert (tmp_path / "goodput.svg").read_text() == chart.svg
    with pytest.raises(penstock.PenstockError, match="metrics are .*goodput_bit_s"):
        run.chart("goodput")


def test_faults_of_questions_are_exceptions():
    with pytest.raises(penstock.PenstockError, match="not a rate"):
        penstock.check("tc qdisc show\n", rate="fast")
    with pytest.raises(penstock.PenstockError):
        penstock.explain(SHAPER, "tcp nonsense", dev="eth0")


def test_a_builder_writes_what_it_was_told():
    e = penstock.Experiment(duration="1s")
    e.host("a.b", eth0={"address": "10.0.0.1/24", "mtu": 1400}, setup=['echo "x\\y"', "true"], env={"RATE": "1mbit"})
    e.host("c", eth0="10.0.0.2/24").link({"end": "a.b:eth0", "rate": "1mbit"}, "c:eth0", rate="10mbit")
    e.app("c", "ping -c 1 10.0.0.1", at="0.1s").expect("c ping rtt", "<50ms")
    assert '[host."a.b"]' in e.toml() and 'setup = ["echo \\"x\\\\y\\"", "true"]' in e.toml()
    run = e.run(seed=4)
    assert run.succeeded and run.record["seed"] == 4
    assert penstock.expectations(e) == [("c ping rtt", "<50ms")]
    with pytest.raises(ValueError, match="already"):
        e.host("c")
    with pytest.raises(TypeError, match="cannot be written"):
        penstock.Experiment(duration=1j).toml()
    with pytest.raises(penstock.PenstockError) as caught:
        e.link("c:eth7", "a:eth0").run()
    assert caught.value.faults[0]["file"] == "experiment" and caught.value.faults[0]["line"] > 1


def test_a_machine_keeps_what_was_set_up():
    m = penstock.Machine()
    m("D=eth1; tc qdisc add dev $D root handle 7: sfq")
    assert "sfq 7:" in m.show() and "Sent 0 bytes" in m.show()
    with pytest.raises(penstock.PenstockError, match="tc qdisc del dev eth0 root handle 9:: Error: Invalid handle."):
        m("tc qdisc del dev eth0 root handle 9:")
    assert penstock.Machine()("tc qdisc show dev eth1").find("sfq") < 0


def test_packets_are_arrays():
    out = penstock.replay(
        "qdisc add dev $DEV $PARENT handle 1: prio",
        numpy.zeros(3),
        numpy.array([1000, 500, 500]),
        rate="8mbit",
        packet=[{"tos": 8}, {"tos": 16}, {"tos": 16}],
    )
    assert out.t_ns.dtype == numpy.int64 and not out.dropped.any()
    # The first goes at once, then those behind it; the line is an HTB class, whose clock is up to 1 ns a packet late.
    assert [round(t / 1000) for t in out.t_ns.tolist()] == [0, 1_000, 1_500]
    assert (out.delay_ns == out.t_ns).all() and out.marked is None
    with pytest.raises(ValueError, match="length has 2 entries"):
        penstock.replay([], [0], [100, 200])
    with pytest.raises(penstock.PenstockError):
        penstock.replay("qdisc add dev $DEV $PARENT handle 1: prio bands 2", [0], 100)
