// Lessons: each a text with scripts and experiments that run where they stand.
import { Cancelled, long, quick } from "./ask";
import { byId, h, say } from "./dom";
import { Editor } from "./editor";
import type { Files } from "./lab";
import { play, type Ran } from "./play";

export interface Lesson {
  id: string;
  title: string;
  /** Made of our own texts when the page was built. */
  html: string;
}

interface Opens {
  lab(files: Files): void;
  script(text: string): void;
}

/** The list, and the lesson that is chosen. */
export class LearnView {
  constructor(
    private readonly lessons: Lesson[],
    private readonly opens: Opens,
  ) {
    byId("lessons").replaceChildren(...lessons.map((lesson) => h("li", {}, h("a", { href: `#learn=${lesson.id}` }, lesson.title))));
  }

  show(id: string): void {
    const lesson = this.lessons.find((l) => l.id === id) ?? this.lessons[0];
    for (const link of byId("lessons").querySelectorAll("a")) {
      if (link.hash === `#learn=${lesson.id}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const body = byId("lesson");
    if (body.dataset.lesson === lesson.id) return;
    body.dataset.lesson = lesson.id;
    body.innerHTML = lesson.html;
    for (const code of body.querySelectorAll<HTMLElement>("code.language-toml, code.language-sh, code.language-machine")) {
      const pre = code.parentElement!;
      if (code.classList.contains("language-machine")) this.machine(pre, code.textContent!);
      else if (code.classList.contains("language-toml")) this.experiment(pre, code.textContent!, lesson);
      else this.script(pre, code.textContent!);
    }
    for (const pre of body.querySelectorAll("pre")) pre.tabIndex = 0;
  }

  /** The files of a lesson: the scripts that stand in it under a name (`# name: x.sh` in their first line). */
  private filesOf(lesson: Lesson): [string, string][] {
    const files: [string, string][] = [];
    const page = new DOMParser().parseFromString(lesson.html, "text/html");
    for (const code of page.querySelectorAll("code")) {
      const named = /^# name: (\S+)\n/.exec(code.textContent ?? "");
      if (named) files.push([named[1], code.textContent!.slice(named[0].length)]);
    }
    return files;
  }

  private experiment(pre: Element, text: string, lesson: Lesson): void {
    // A part of a file does not run by itself.
    if (!/^\s*\[host\./m.test(text)) return;
    const there = this.filesOf(lesson).map(([path]) => path);
    const needs = [...text.matchAll(/^base\s*=\s*"([^"]+)"|"@([^"]+)"/gm)].map((m) => m[1] ?? m[2]);
    if (needs.some((path) => !there.includes(path))) return;
    const place = h("div", { class: "lesson-editor" });
    const bar = h("progress", { max: 1, value: 0, "aria-label": "share of the run that is done" });
    const status = h("p", { class: "status", role: "status" });
    const result = h("div", {});
    bar.hidden = true;
    let before: Ran | undefined;
    let editor: Editor;
    const run = h("button", { class: "main" }, "Run");
    run.addEventListener("click", async () => {
      run.disabled = true;
      bar.hidden = false;
      try {
        if (long.busy) long.cancel();
        const named = /^# name: (\S+)\n/.exec(editor.text);
        const question = { ask: "run", name: named?.[1] ?? "lesson.toml", text: editor.text, files: this.filesOf(lesson) };
        const ran = await long.ask<Ran>(question, (share) => (bar.value = share));
        result.replaceChildren(play(ran, before, () => {}));
        before = ran;
        status.textContent = before ? "Change a value and run it again: the run before stays as dashed lines." : "";
        say("The run is over");
      } catch (fault) {
        if (!(fault instanceof Cancelled)) status.textContent = fault instanceof Error ? fault.message : String(fault);
      } finally {
        run.disabled = false;
        bar.hidden = true;
      }
    });
    const open = h("button", { click: () => this.opens.lab({ name: "lesson.toml", text: editor.text, files: this.filesOf(lesson) }) }, "Open in the lab");
    pre.replaceWith(h("div", { class: "live" }, place, h("p", { class: "controls" }, run, open, bar), status, result));
    editor = new Editor(place, text.trimEnd(), { language: "toml", label: "Experiment of the lesson" });
  }

  private script(pre: Element, text: string): void {
    const open = h("button", { click: () => this.opens.script(text.replace(/^# name: \S+\n/, "")) }, "Open in Script");
    pre.after(h("p", { class: "controls" }, open));
  }

  /** A prompt at a machine. */
  private machine(pre: Element, text: string): void {
    const out = h("pre", { class: "terminal", tabindex: 0, "aria-label": "what the machine said", role: "log" });
    const input = h("input", { "aria-label": "a command for the machine", autocomplete: "off", spellcheck: "false" });
    let fresh = true;
    const enter = async (line: string) => {
      out.append(`# ${line}\n`);
      try {
        const said = await quick.line(line, fresh);
        fresh = false;
        out.append(said.stdout, said.stderr);
      } catch (fault) {
        out.append(`${fault instanceof Error ? fault.message : String(fault)}\n`);
      }
      out.scrollTop = out.scrollHeight;
    };
    const form = h("form", { class: "controls" }, input, h("button", { class: "main" }, "Enter"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const line = input.value;
      input.value = "";
      if (line.trim()) void enter(line);
    });
    const lines = text.trim().split("\n");
    const first = h("button", { type: "button", click: async () => { for (const line of lines) await enter(line); } }, "Run these");
    form.append(first);
    pre.after(h("div", { class: "live" }, out, form));
  }
}
