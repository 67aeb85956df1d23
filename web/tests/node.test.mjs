// The program in WebAssembly against the native one: the same bytes, the same words. Run by node's own runner.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import Ajv from "ajv";
import { parse } from "smol-toml";
import { Core } from "./built/core.mjs";
import { LEFT_OUT, here, record, root, said, sha256 } from "./native.mjs";

const dist = join(here, "../dist");
const module = await WebAssembly.compile(readFileSync(join(dist, "penstock.wasm")));
const material = JSON.parse(readFileSync(join(dist, "material.json"), "utf8"));
const ok = (answer) => {
  assert.ok("ok" in answer, JSON.stringify(answer).slice(0, 2000));
  return answer.ok;
};

test("the program asks its host for two things alone", () => {
  const asked = WebAssembly.Module.imports(module).map((i) => `${i.module}.${i.name}`);
  assert.deepEqual(asked.sort(), ["page.complain", "page.tell"]);
});

for (const example of material.examples) {
  const why = LEFT_OUT[example.name];
  test(`record.json of ${example.name}`, { skip: why }, async () => {
    const core = await Core.load(module);
    let last = -1;
    const { name, text, files } = example;
    const ran = ok(core.ask({ ask: "run", name, text, files, samples: 0 }, (share) => (last = share)));
    assert.equal(last, 1, "its progress is told");
    assert.equal(sha256(ran.record), record(name));
  });
}

const scripts = ["", "systems/"].flatMap((part) => readdirSync(join(root, "examples", part)).filter((n) => n.endsWith(".sh")).map((n) => part + n));
for (const name of scripts) {
  test(`check of ${name}`, { skip: LEFT_OUT[name.replace(".sh", ".toml")] }, async () => {
    const core = await Core.load(module);
    const text = readFileSync(join(root, "examples", name), "utf8");
    const native = JSON.parse(said(["check", "--format", "json", name], { cwd: join(root, "examples") }));
    const { findings, coverage } = ok(core.ask({ ask: "check", name, text }));
    // The page has edits of its own form, and the length under another name.
    const plain = findings.map(({ len, edits, ...finding }) => finding);
    const told = native.findings.map(({ edits, ...finding }) => finding);
    assert.deepEqual({ findings: plain, coverage }, { findings: told, coverage: native.coverage });
  });
}

test("scripts with loops, functions, jobs and pauses say the same", async () => {
  const texts = [
    "for i in 1 2 3; do tc qdisc add dev eth0 root handle $i: sfq; tc qdisc del dev eth0 root; done",
    "f() { local x=$1; tc qdisc add dev \"$x\" root tbf rate 1mbit burst 5k latency 5ms; }; f eth1; tc qdisc show dev eth1 | grep -c tbf",
    "(sleep 2; echo later) & (sleep 1; echo sooner) & wait; echo $SECONDS",
    "x=$(date +%s); sleep 1.5; y=$(date +%s); echo $((y - x)); timeout 2 sleep 10; echo $?",
    "cat > /tmp/b <<E\nqdisc add dev eth0 root handle 1: prio\nE\ntc -batch /tmp/b; tc qdisc show dev eth0",
    "eval 'a=1; b=$((a + 1))'; echo $b; . /dev/stdin <<< 'echo sourced'; bash -c 'echo inner $0' name",
    "echo 1 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward; ls /sys/class/net",
    "trap 'echo bye' EXIT; set -e; tc qdisc add dev nowhere root sfq; echo not reached",
    "seq 5 | while read n; do printf '%d,' $n; done; echo; echo $RANDOM $RANDOM",
  ];
  for (const text of texts) {
    const core = await Core.load(module);
    const here = ok(core.ask({ ask: "shell", text, name: "standard input" }));
    const state = mkdtempSync(join(tmpdir(), "penstock-web-shell-"));
    const native = said(["shell", "--host", join(state, "machine")], { input: text });
    rmSync(state, { recursive: true, force: true });
    assert.equal(here.stdout, native, text);
  }
});

test("a machine keeps what was set up", async () => {
  const core = await Core.load(module);
  assert.equal(core.line("D=eth0; tc qdisc add dev $D root handle 7: sfq").status, 0);
  assert.equal(core.line("tc qdisc show dev $D | cut -d' ' -f1-3").stdout, "qdisc sfq 7:\n");
  core.machine();
  assert.equal(core.line("tc qdisc show dev eth0 | grep -c sfq").stdout, "0\n");
});

test("what waits for ever is ended", async () => {
  const core = await Core.load(module);
  const said = core.line("mkfifo /tmp/f; cat /tmp/f");
  assert.ok(said.status !== 0 || said.stderr !== "" || said.stdout === "", JSON.stringify(said));
  assert.equal((await Core.load(module)).line("echo on").stdout, "on\n");
});

test("a script too deep for the browser's stack is told", async () => {
  const core = await Core.load(module);
  const text = "f() { eval \"f\"; }; f";
  try {
    const said = core.line(text);
    assert.match(said.stderr, /limit/);
  } catch (fault) {
    assert.match(fault.message, /too deep/);
  }
});

test("a question that is none is told", async () => {
  const core = await Core.load(module);
  assert.match(core.ask({ ask: "nothing" }).faults[0].message, /is not a question/);
  assert.match(core.ask({ ask: "run", text: "title = 3" }).faults[0].text, /title/);
});

test("what the lessons say of their experiments", async () => {
  const core = await Core.load(module);
  const flows = (text) => JSON.parse(ok(core.ask({ ask: "run", name: "x.toml", text, files: [], samples: 0 })).record);
  const experiment = (id) => {
    const { html } = material.lessons.find((lesson) => lesson.id === id);
    const code = /<code class="language-toml">([^]*?)<\/code>/.exec(html)[1];
    return code.replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  };
  const lesson = (id) => readFileSync(join(root, "web/lessons", readdirSync(join(root, "web/lessons")).find((name) => name.endsWith(`-${id}.md`))), "utf8");
  const says = (id, figure) => assert.ok(lesson(id).includes(figure), `${id} does not say ${figure}`);
  const kbit = (bits) => Math.round(bits / 1000);
  // A voice call behind one queue, and in a class of its own.
  const call = experiment("router-of-2000");
  for (const text of [call, call.replaceAll("  # tc", "  tc")]) {
    const voice = flows(text).flows.find((flow) => flow.name === "voice");
    says("router-of-2000", `${voice.lost_packets} ${voice.lost_packets > 1 ? "are" : "is"} lost`);
  }
  // The clock's table.
  const clock = experiment("clock");
  for (const rate of [500, 700, 800, 1000]) {
    const at = (hz) => kbit(flows(clock.replace("700kbit", `${rate}kbit`).replace("hz     = 100", `hz = ${hz}`)).flows[0].goodput_bit_s);
    says("clock", `| ${rate}kbit | ${at(100)} kbit/s | ${at(1000)} kbit/s |`);
  }
  // Shares of those near and those far away.
  const near = experiment("near-and-far");
  for (const [queue, words] of [["pfifo limit 72", "`pfifo limit 72`"], [/red min .*3mbit/.exec(lesson("near-and-far"))[0], "`red`, as below"], ["fq_codel", "`fq_codel`"]]) {
    const groups = flows(near.replace("pfifo limit 72", queue)).groups;
    const of = (name) => kbit(groups.find((group) => group.name === name).goodput_bit_s);
    says("near-and-far", `| ${words} | ${of("far")} kbit/s | ${of("near")} kbit/s |`);
  }
  // Who is served first.
  const bands = experiment("pfifo-fast");
  const second = flows(bands).apps.find((app) => app.name === "second").throughput_bit_s;
  says("pfifo-fast", `${(second / 1e6).toFixed(1)} Mbit/s`);
});

test("the schema of experiments, by a validator of others", () => {
  const schema = JSON.parse(readFileSync(join(root, "docs/experiment.schema.json"), "utf8"));
  const validate = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true }).compile(schema);
  for (const { name, text } of material.examples) {
    const file = parse(text);
    assert.ok(validate(file), `${name}: ${JSON.stringify(validate.errors)}`);
    for (const [key, value] of Object.entries(file)) {
      const { [key]: _, ...rest } = file;
      assert.ok(!validate({ ...rest, [`${key}x`]: value }), `${name}: ${key}x`);
    }
    for (const wrong of [{ duration: 10 }, { seed: "1" }, { host: [] }, { link: [{ ends: true }] }, { flow: [{ from: "a" }] }, { kernel: "3.0" }]) {
      assert.ok(!validate({ ...file, ...wrong }), `${name}: ${JSON.stringify(wrong)}`);
    }
  }
});
