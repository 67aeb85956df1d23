// An experiment: its file, the network, the run as it went, the report, and the run before beside it.
import { Cancelled, Faults, long, quick } from "./ask";
import { byId, download, h, say } from "./dom";
import { Editor } from "./editor";
import { type Link, play, type Ran } from "./play";

/** An experiment with the files that it names. */
export interface Files {
  name: string;
  text: string;
  files: [string, string][];
}

/** A file's contents as the program takes them: an object of eBPF has each of its bytes as one character. */
async function contents(file: File): Promise<string> {
  if (!file.name.endsWith(".o")) return file.text();
  const bytes = new Uint8Array(await file.arrayBuffer());
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

export class LabView {
  private readonly editor: Editor;
  private files: [string, string][];
  private name: string;
  private timer = 0;
  private asked = 0;
  private last: Ran | undefined;
  private kept: Ran | undefined;

  constructor(first: Files) {
    this.files = first.files;
    this.name = first.name;
    this.editor = new Editor(byId("lab-editor"), first.text, {
      language: "toml",
      label: "Experiment file",
      changed: () => this.later(),
    });
    byId("lab-run").addEventListener("click", () => void this.run());
    byId("lab-cancel").addEventListener("click", () => long.cancel());
    byId("lab-keep").addEventListener("click", () => {
      this.kept = this.last;
      byId("lab-keep").textContent = "Kept: the next run is drawn over it";
    });
    byId("lab-save").addEventListener("click", () => download(this.name.split("/").pop()!, this.editor.text));
    byId("lab-record").addEventListener("click", () => this.last && download("record.json", this.last.record, "application/json"));
    byId("lab-report").addEventListener("click", () => this.last && download("report.html", this.last.report, "text/html"));
    byId<HTMLSelectElement>("lab-file").addEventListener("change", () => this.showFile());
    byId<HTMLInputElement>("lab-open").addEventListener("change", async (event) => {
      const opened = [...((event.target as HTMLInputElement).files ?? [])];
      const main = opened.find((f) => f.name.endsWith(".toml"));
      const others = await Promise.all(opened.filter((f) => f !== main).map(async (f): Promise<[string, string]> => [f.name, await contents(f)]));
      if (main) this.open({ name: main.name, text: await main.text(), files: others });
      else {
        this.files = [...this.files.filter(([path]) => !others.some(([other]) => other === path)), ...others];
        this.fillFiles();
        this.later(0);
      }
    });
    this.fillFiles();
    this.later(0);
  }

  state(): Files {
    return { name: this.name, text: this.editor.text, files: this.files };
  }

  /** Shows another experiment. */
  open(files: Files): void {
    if (long.busy) long.cancel();
    this.name = String(files.name ?? "experiment.toml");
    this.files = files.files ?? [];
    this.last = undefined;
    this.kept = undefined;
    this.fillFiles();
    this.editor.text = String(files.text);
    byId("lab-result").replaceChildren();
    byId("lab-after").hidden = true;
  }

  private fillFiles(): void {
    const select = byId<HTMLSelectElement>("lab-file");
    select.replaceChildren(...this.files.map(([path]) => h("option", { value: path }, path)));
    byId("lab-files").hidden = this.files.length === 0;
    this.showFile();
  }

  private showFile(): void {
    const path = byId<HTMLSelectElement>("lab-file").value;
    const text = byId<HTMLTextAreaElement>("lab-file-text");
    const found = this.files.find(([name]) => name === path);
    text.value = found?.[1] ?? "";
    text.oninput = () => {
      if (found) found[1] = text.value;
      this.later();
    };
  }

  private later(wait = 350): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.read(), wait);
  }

  /** Whether the file can be read, while one types. */
  private async read(): Promise<void> {
    const asked = ++this.asked;
    try {
      interface Read {
        title: string;
        about: string | null;
        duration_s: number;
        seed: number;
        hosts: string[];
      }
      const read = await quick.ask<Read>({ ask: "read", ...this.state() });
      if (asked !== this.asked) return;
      this.editor.mark([]);
      byId("lab-status").textContent = `${read.title}: ${read.hosts.length} machines, ${read.duration_s} s, seed ${read.seed}`;
    } catch (fault) {
      if (fault instanceof Cancelled || asked !== this.asked) return;
      this.faults(fault);
    }
  }

  private faults(fault: unknown): void {
    if (!(fault instanceof Faults)) {
      byId("lab-status").textContent = fault instanceof Error ? fault.message : String(fault);
      return;
    }
    const here = fault.faults.filter((f) => !f.file || f.file === this.name);
    this.editor.mark(here.map((f) => ({ ...f, message: [f.message, f.help].filter(Boolean).join("\n") })));
    byId("lab-status").textContent = fault.faults.map((f) => `${f.file && f.file !== this.name ? `${f.file}: ` : ""}${f.line ? `line ${f.line}: ` : ""}${f.message}${f.help ? ` (${f.help})` : ""}`).join("\n");
  }

  async run(): Promise<void> {
    if (long.busy) return;
    const bar = byId<HTMLProgressElement>("lab-progress");
    const [run, cancel] = [byId<HTMLButtonElement>("lab-run"), byId<HTMLButtonElement>("lab-cancel")];
    bar.value = 0;
    bar.hidden = cancel.hidden = false;
    run.disabled = true;
    say("The run begins");
    const began = performance.now();
    try {
      const keep = byId<HTMLInputElement>("lab-name").value.trim();
      const ran = await long.ask<Ran & { kept?: string }>({ ask: "run", ...this.state() }, (share) => (bar.value = share), keep);
      this.last = ran;
      const took = ((performance.now() - began) / 1000).toFixed(1);
      const verdict = ran.succeeded ? "all expectations met" : "an expectation was not met, or a program failed";
      const place = ran.kept ? `; kept in ${ran.kept}` : "";
      byId("lab-status").textContent = `${ran.title}: ${verdict} (${ran.duration_s} s of network in ${took} s)${place}`;
      say(`The run is over: ${verdict}`);
      this.show(ran);
    } catch (fault) {
      if (fault instanceof Cancelled) byId("lab-status").textContent = "The run was ended.";
      else this.faults(fault);
    } finally {
      bar.hidden = cancel.hidden = true;
      run.disabled = false;
    }
  }

  private show(ran: Ran): void {
    const warnings = ran.warnings.length ? h("pre", { class: "warnings" }, ran.warnings.map((w) => w.text).join("\n")) : undefined;
    const report = h("iframe", { title: "the report of the run", sandbox: "allow-scripts allow-downloads", srcdoc: ran.report, class: "report", loading: "lazy" });
    byId("lab-result").replaceChildren(...[warnings, play(ran, this.kept, (link) => this.openLink(ran, link)), report].filter((x) => x !== undefined));
    byId("lab-after").hidden = false;
    byId("lab-keep").textContent = "Keep this run to compare with";
  }

  /** Shows what a link has, below the picture, to be changed. */
  private openLink(ran: Ran, number: number): void {
    const link = (JSON.parse(ran.record) as { rig: { links: Link[] } }).rig.links[number];
    const ends = link.ends.map((end) => (typeof end === "string" ? end : `${end.host}:${end.dev}`));
    const tc = (bits: number) => {
      const [unit, name] = ([[1e9, "gbit"], [1e6, "mbit"], [1e3, "kbit"]] as const).find(([unit]) => bits >= unit && bits % unit === 0) ?? [1, "bit"];
      return `${bits / unit}${name}`;
    };
    const field = (key: string, words: string, value: string, example: string) => {
      const input = h("input", { value, size: 9, spellcheck: "false", autocomplete: "off", placeholder: example });
      return { key, was: value, input, dom: h("label", {}, words, input) };
    };
    const rates = link.end_rates_bit_s
      ? link.end_rates_bit_s.map((bits, n) => field(`ends.${n + 1}.rate`, `rate from ${ends[n]}`, tc(bits), "10mbit"))
      : [field("rate", "rate", link.rate_bit_s ? tc(link.rate_bit_s) : "", "10mbit")];
    const fields = [...rates, field("delay", "delay", `${link.delay_ms ?? 0}ms`, "10ms")];
    const status = h("p", { class: "status", role: "alert" });
    const form = h(
      "form",
      { class: "link-form", "aria-label": `the link ${ends.join(" – ")}` },
      h("h3", {}, `Link ${ends.join(" – ")}`),
      h("div", { class: "controls" }, ...fields.map((f) => f.dom), h("button", { class: "main" }, "Change it and run again"), h("button", { type: "button", click: () => this.goToLink(number) }, "Show it in the file"), h("button", { type: "button", click: () => form.remove() }, "Close")),
      status,
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const set = fields.filter((f) => f.input.value.trim() !== f.was).map((f) => [f.key, f.input.value.trim()]);
      if (set.length === 0) return void (status.textContent = "Nothing was changed");
      try {
        const changed = await quick.ask<{ text: string; files: [string, string][] }>({ ask: "change", ...this.state(), link: number, set });
        this.editor.text = changed.text;
        this.files = changed.files;
        this.fillFiles();
        clearTimeout(this.timer);
        // The run before stays as dashed lines.
        this.kept = this.last;
        await this.run();
      } catch (fault) {
        status.textContent = fault instanceof Faults ? fault.faults.map((f) => `${f.message}${f.help ? ` (${f.help})` : ""}`).join("\n") : String(fault);
      }
    });
    document.querySelector("#lab-result .link-form")?.remove();
    document.querySelector("#lab-result .play .wide")?.after(form);
    fields[0].input.focus();
    fields[0].input.select();
  }

  /** Goes to the nth link of the file, where it stands in the file itself. */
  private goToLink(number: number): void {
    const lines = this.editor.text.split("\n");
    const links = lines.map((line, at) => (/^\s*\[\[link\]\]/.test(line) ? at : -1)).filter((at) => at >= 0);
    const start = links[number];
    if (start === undefined) return say("The link stands in another file");
    const rate = lines.slice(start + 1).findIndex((line) => /^\s*(rate|\[)/.test(line));
    const at = rate >= 0 && /^\s*rate/.test(lines[start + 1 + rate]) ? start + 1 + rate : start;
    this.editor.show(at + 1);
  }
}
