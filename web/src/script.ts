// A shaping script: what is wrong in it, its classes, where packets go, what another version changes.
import { Cancelled, Faults, quick } from "./ask";
import { byId, download, h, say } from "./dom";
import { Editor, type Mark } from "./editor";
import { type Device, draw } from "./tree";

interface Edit {
  before?: number;
  remove?: number;
  to?: number;
  line?: number;
  column?: number;
  len?: number;
  text: string;
}
interface Finding {
  code: string;
  level: string;
  file: string;
  line: number;
  column: number;
  len: number;
  message: string;
  reason: string;
  fix: string;
  edits: Edit[];
}
interface Checked {
  findings: Finding[];
  coverage_text: string;
  fixed: string | null;
  fixes: number;
  devices: Device[];
  stopped: string | null;
}
interface Part {
  line: number;
  packets: string;
  to: string;
  without: number[];
  without_more: number;
  reached: "yes" | "never" | "unknown";
  example?: string;
}

/** Most rows of a table, and most findings that are listed; more are said. */
const ROWS = 300;

/** What a link holds of this view. */
export interface ScriptState {
  text: string;
  after?: string;
  dev?: string;
  rate?: string;
  packet?: string;
}

/** The text with an edit made, as penstock check --fix makes it. */
export function edited(text: string, edits: Edit[]): string {
  const lines = text.split("\n");
  const place = (e: Edit) => (e.before ?? e.remove ?? e.line ?? 0) * 1e6 + (e.column ?? 0);
  for (const edit of [...edits].sort((a, b) => place(b) - place(a))) {
    if (edit.remove !== undefined) {
      lines.splice(edit.remove - 1, edit.to! - edit.remove + 1);
    } else if (edit.before !== undefined) {
      const at = Math.min(edit.before - 1, lines.length);
      const indent = /^\s*/.exec(lines[at] ?? "")![0];
      lines.splice(at, 0, indent + edit.text);
    } else {
      const chars = Array.from(lines[edit.line! - 1] ?? "");
      chars.splice(edit.column! - 1, edit.len!, edit.text);
      lines[edit.line! - 1] = chars.join("");
    }
  }
  return lines.join("\n");
}

export class ScriptView {
  private readonly editor: Editor;
  private other: Editor | undefined;
  private timer = 0;
  private asked = 0;
  private looked = "";
  private devices: Device[] = [];
  private parts: { text: string; node: HTMLElement }[] = [];

  constructor(text: string) {
    this.editor = new Editor(byId("script-editor"), text, {
      language: "shell",
      label: "Shaping script",
      changed: () => this.later(),
      devices: () => ["eth0", "eth1", ...this.devices.map((d) => d.name)],
      meaning: (word) => this.meaning(word),
    });
    for (const id of ["script-dev", "script-rate"]) byId(id).addEventListener("change", () => this.later(0));
    byId<HTMLFormElement>("packet-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.walk();
    });
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-packet]")) {
      button.addEventListener("click", () => {
        byId<HTMLInputElement>("packet").value = button.dataset.packet!;
        void this.walk();
      });
    }
    byId("part-search").addEventListener("input", () => this.search());
    byId("fix-all").addEventListener("click", () => void this.fixAll());
    byId("compare-start").addEventListener("click", () => this.compare(this.editor.text));
    byId("compare-run").addEventListener("click", () => void this.diff());
    byId("script-save").addEventListener("click", () => download("shaper.sh", this.editor.text, "text/x-shellscript"));
    byId<HTMLInputElement>("script-open").addEventListener("change", async (event) => {
      const file = (event.target as HTMLInputElement).files?.[0];
      if (file) this.editor.text = await file.text();
    });
    this.later(0);
  }

  state(): ScriptState {
    return {
      text: this.editor.text,
      after: this.other?.text,
      dev: this.dev,
      rate: byId<HTMLInputElement>("script-rate").value || undefined,
      packet: byId<HTMLInputElement>("packet").value || undefined,
    };
  }

  restore(state: ScriptState): void {
    byId<HTMLInputElement>("script-rate").value = state.rate ?? "";
    if (state.packet) byId<HTMLInputElement>("packet").value = state.packet;
    if (state.dev) this.fillDevices([state.dev], state.dev);
    this.editor.text = String(state.text);
    if (state.after !== undefined) this.compare(String(state.after));
  }

  private get dev(): string {
    return byId<HTMLSelectElement>("script-dev").value;
  }

  private meaning(word: string): string | undefined {
    for (const device of this.devices) {
      const found = device.classes.find((c) => c.id === word);
      if (found) return [`${device.name} ${found.id}: ${found.kind} class`, ...found.promise].join("\n");
      const qdisc = device.qdiscs.find((q) => q.handle === word && q.handle !== "0:");
      if (qdisc) return `${device.name} ${qdisc.handle} ${qdisc.kind}, ${qdisc.parent === "root" ? "root" : `in ${qdisc.parent}`}`;
    }
    return undefined;
  }

  private question(ask: string): { ask: string; text: string; name: string; rate?: string; dev?: string } {
    return { ask, text: this.editor.text, name: "shaper.sh", rate: byId<HTMLInputElement>("script-rate").value };
  }

  private later(wait = 350): void {
    clearTimeout(this.timer);
    // Fixes are of the text that was looked at.
    for (const fix of document.querySelectorAll<HTMLButtonElement>("#findings .fix, #fix-all")) fix.disabled = true;
    this.timer = window.setTimeout(() => void this.check(), wait);
  }

  /** Whether an answer is not wanted any more. */
  private stale(asked: number): boolean {
    return asked !== this.asked;
  }

  private async check(): Promise<void> {
    const asked = ++this.asked;
    const status = byId("script-status");
    status.textContent = "checking …";
    // What was asked of an older text is not waited for.
    if (quick.busy) quick.cancel();
    try {
      const question = this.question("check");
      const answer = await quick.ask<Checked>(question);
      if (this.stale(asked)) return;
      this.looked = question.text;
      this.devices = answer.devices;
      this.fillDevices(answer.devices.map((d) => d.name), this.dev);
      this.show(answer);
      await this.partition(asked);
      if (byId<HTMLInputElement>("packet").value && !this.stale(asked)) await this.walk();
      if (this.other && !this.stale(asked)) await this.diff();
    } catch (fault) {
      if (fault instanceof Cancelled || this.stale(asked)) return;
      status.textContent = fault instanceof Error ? fault.message : String(fault);
      this.editor.mark([]);
    }
  }

  private fillDevices(names: string[], chosen: string): void {
    const select = byId<HTMLSelectElement>("script-dev");
    const all = [...new Set(names)];
    select.replaceChildren(...all.map((name) => h("option", { value: name }, name)));
    if (all.includes(chosen)) select.value = chosen;
  }

  private show(answer: Checked): void {
    const count = (level: string) => answer.findings.filter((f) => f.level === level).length;
    const plural = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
    const [errors, warnings, notes] = [count("error"), count("warning"), count("note")];
    const more = notes ? `, ${plural(notes, "note")}` : "";
    const text = answer.findings.length ? `${plural(errors, "error")}, ${plural(warnings, "warning")}${more}` : "nothing found";
    byId("script-status").textContent = `${text}. ${answer.coverage_text.trim()}${answer.stopped ? ` Stopped: ${answer.stopped}` : ""}`;
    say(text);
    byId<HTMLButtonElement>("fix-all").hidden = !answer.fixed;
    byId<HTMLButtonElement>("fix-all").disabled = false;
    byId("fix-all").textContent = `Make the ${plural(answer.fixes, "safe fix").replace("fixs", "fixes")}`;
    byId("fix-all").dataset.fixed = answer.fixed ?? "";
    const marks: Mark[] = answer.findings.slice(0, ROWS).map((f) => ({
      line: f.line,
      column: f.column,
      len: f.len,
      level: f.level,
      message: [f.message, f.reason, f.fix && `instead: ${f.fix}`].filter(Boolean).join("\n"),
      source: f.code,
      fix: f.edits.length ? { name: "Fix", apply: () => this.fix(f) } : undefined,
    }));
    this.editor.mark(marks);
    byId("findings").replaceChildren(
      ...answer.findings.slice(0, ROWS).map((f) => {
        const go = h("button", { class: "place", click: () => this.editor.show(f.line) }, f.line ? `line ${f.line}` : "the whole");
        const fix = f.edits.length ? h("button", { class: "fix", click: () => this.fix(f) }, "Fix") : undefined;
        const more = f.fix ? h("pre", { tabindex: 0, "aria-label": "what to write instead" }, f.fix) : undefined;
        const shown = { error: "✗ error", note: "· note" }[f.level] ?? "▲ warning";
        const level = h("strong", { class: f.level === "error" ? "bad" : f.level === "note" ? "soft" : "warn" }, `${shown} ${f.code}`);
        return h("li", {}, h("p", {}, go, " ", level, " ", f.message, " ", fix), f.reason ? h("p", { class: "soft" }, f.reason) : undefined, more);
      }),
    );
    if (answer.findings.length > ROWS) byId("findings").append(h("li", {}, `and ${answer.findings.length - ROWS} more`));
    const trees = answer.devices.map((device) => draw(device, (line) => this.editor.show(line)));
    byId("trees").replaceChildren(...(trees.length ? trees : [h("p", { class: "soft" }, "The script puts no queue on a device.")]));
  }

  private fix(finding: Finding): void {
    if (this.looked !== this.editor.text) return;
    this.editor.text = edited(this.editor.text, finding.edits);
    this.editor.show(finding.line);
  }

  private async fixAll(): Promise<void> {
    const fixed = byId("fix-all").dataset.fixed;
    if (fixed) this.editor.text = fixed;
  }

  private async partition(asked: number): Promise<void> {
    const table = byId("partition");
    if (!this.dev) {
      table.replaceChildren();
      this.parts = [];
      return;
    }
    try {
      interface Partition {
        parts: Part[];
        never: number[];
        complete: boolean;
      }
      const answer = await quick.ask<Partition>({ ...this.question("partition"), dev: this.dev });
      if (this.stale(asked)) return;
      this.parts = answer.parts.slice(0, ROWS).map((part, n) => {
        const more = part.without_more ? ` and ${part.without_more} more` : "";
        const without = part.without.length ? `${part.reached === "never" ? "never: all of it is in rows" : "without rows"} ${part.without.slice(0, 8).join(", ")}${more}` : "";
        const place = part.line ? h("button", { class: "place", click: () => this.editor.show(part.line) }, `line ${part.line}`) : "default";
        const example = part.example ? h("button", { class: "place", click: () => this.follow(part.example!) }, "follow one") : undefined;
        const node = h("tr", {}, h("td", {}, String(n + 1)), h("th", { scope: "row" }, part.to), h("td", {}, part.packets, without ? h("span", { class: "soft" }, `; ${without}`) : undefined), h("td", {}, place, " ", example));
        return { text: `${part.to} ${part.packets} ${part.example ?? ""}`.toLowerCase(), node };
      });
      const rest = [];
      if (answer.never.length) rest.push(`Filters that never match anything: line ${answer.never.join(", ")}.`);
      if (!answer.complete || answer.parts.length > ROWS) rest.push("There are more parts than are shown here.");
      byId("part-rest").textContent = rest.join(" ");
      table.replaceChildren(...this.parts.map((p) => p.node));
      this.search();
    } catch (fault) {
      if (fault instanceof Cancelled || this.stale(asked)) return;
      this.parts = [];
      table.replaceChildren(h("tr", {}, h("td", { colspan: 4 }, fault instanceof Error ? fault.message : String(fault))));
    }
  }

  private search(): void {
    const words = byId<HTMLInputElement>("part-search").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const part of this.parts) {
      part.node.hidden = !words.every((word) => part.text.includes(word));
      shown += part.node.hidden ? 0 : 1;
    }
    byId("part-count").textContent = `${shown} of ${this.parts.length}`;
  }

  private follow(packet: string): void {
    byId<HTMLInputElement>("packet").value = packet;
    byId("walk-title").scrollIntoView({ block: "start" });
    void this.walk();
  }

  private async walk(): Promise<void> {
    const out = byId("walk");
    const packet = byId<HTMLInputElement>("packet").value.trim();
    if (!packet) return;
    try {
      interface Way {
        netfilter: string[];
        mark_before: number;
        mark: number;
        dropped: boolean;
        filters: string[];
        class: string | null;
        by: string;
        queue: { kind: string; handle: string } | null;
        promise: string[];
        place: string;
      }
      const way = await quick.ask<Way>({ ...this.question("explain"), dev: this.dev, packet });
      const step = (name: string, text: string, kind = "") => h("li", { class: kind }, h("span", { class: "step" }, name), h("span", {}, text));
      const steps = [
        ...way.netfilter.map((text) => step("netfilter", text)),
        way.mark_before !== way.mark ? step("mark", `${way.mark_before} → ${way.mark}`) : undefined,
        ...way.filters.map((text) => step("filter", text)),
        step("class", way.dropped ? "dropped by netfilter" : way.class ? `${way.class}, by ${way.by}` : way.by || "none", "end"),
        way.queue ? step("queue", `${way.queue.kind} ${way.queue.handle}`, "end") : undefined,
        ...way.promise.map((text) => step("promise", text)),
      ];
      out.replaceChildren(h("p", { class: "answer" }, "The packet goes to ", h("strong", {}, way.place), "."), h("ol", { class: "walk" }, ...steps.filter((x) => x)));
      say(`The packet goes to ${way.place}`);
    } catch (fault) {
      if (fault instanceof Cancelled) return;
      const text = fault instanceof Faults ? fault.faults.map((f) => f.message).join("\n") : String(fault);
      out.replaceChildren(h("p", { class: "bad" }, text));
    }
  }

  private compare(text: string): void {
    byId("compare").hidden = false;
    byId("compare-start").hidden = true;
    if (this.other) this.other.text = text;
    else {
      this.other = new Editor(byId("other-editor"), text, { language: "shell", label: "The new version of the script", changed: () => this.later() });
    }
    void this.diff();
  }

  private async diff(): Promise<void> {
    if (!this.other) return;
    const out = byId("diff");
    try {
      const { lines } = await quick.ask<{ lines: string[] }>({ ...this.question("diff"), dev: this.dev, after: this.other.text });
      const kind = (line: string) => (line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : "");
      out.replaceChildren(...(lines.length ? lines.map((line) => h("li", { class: kind(line) }, line)) : [h("li", {}, "Both versions do the same with every packet.")]));
    } catch (fault) {
      if (!(fault instanceof Cancelled)) out.replaceChildren(h("li", { class: "bad" }, fault instanceof Error ? fault.message : String(fault)));
    }
  }
}
