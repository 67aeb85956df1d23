// The editor: CodeMirror with the words of tc, findings as squiggles, and what a class is promised.
import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { quick } from "./ask";

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--c2)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--c1)" },
  { tag: [tags.keyword, tags.definition(tags.variableName), tags.propertyName], color: "var(--c0)" },
  { tag: [tags.variableName, tags.standard(tags.name)], color: "var(--ink)" },
  { tag: tags.invalid, color: "var(--c6)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13.5px", backgroundColor: "var(--ground)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--c0)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--soft)", borderRight: "1px solid var(--rule)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--c0) 26%, transparent) !important" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-tooltip": { backgroundColor: "var(--ground)", color: "var(--ink)", border: "1px solid var(--soft)", borderRadius: "6px", maxWidth: "46ch" },
  ".cm-tooltip .promise": { padding: "6px 10px", whiteSpace: "pre-line" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--c0)", color: "var(--ground)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
  ".cm-diagnosticAction": { backgroundColor: "var(--ink)", color: "var(--ground)", borderRadius: "4px", padding: "2px 8px" },
  ".cm-panels": { backgroundColor: "var(--ground)", color: "var(--ink)" },
  ".cm-textfield, .cm-button": { backgroundImage: "none", backgroundColor: "var(--ground)", color: "var(--ink)", border: "1px solid var(--soft)" },
});

/** A place to mark: line and column from 1, length 0 where the whole line is meant. */
export interface Mark {
  line: number;
  column: number;
  len: number;
  level: string;
  message: string;
  source?: string;
  fix?: { name: string; apply: (view: EditorView) => void };
}

/** What an editor is for. */
export interface Wishes {
  language: "shell" | "toml";
  label: string;
  changed?: (text: string) => void;
  /** What a word of the text means, where something is known of it. */
  meaning?: (word: string) => string | undefined;
  /** Devices for completion. */
  devices?: () => string[];
}

export class Editor {
  readonly view: EditorView;

  constructor(parent: HTMLElement, text: string, wishes: Wishes) {
    const complete = async (context: CompletionContext): Promise<CompletionResult | null> => {
      const line = context.state.doc.lineAt(context.pos);
      const before = line.text.slice(0, context.pos - line.from);
      const word = /[^\s;|&(){}`"]*$/.exec(before)?.[0] ?? "";
      if (!word && !context.explicit) return null;
      const answer = await quick.ask<{ choices: { word: string; about: string }[] }>({
        ask: "words",
        line: before,
        devices: wishes.devices?.() ?? ["eth0", "eth1"],
      });
      const options = answer.choices.map((c) => ({ label: c.word, detail: c.about || undefined }));
      return options.length ? { from: context.pos - word.length, options, validFor: /^[\w-]*$/ } : null;
    };
    const hover = hoverTooltip((view, pos) => {
      const line = view.state.doc.lineAt(pos);
      const at = pos - line.from;
      for (const found of line.text.matchAll(/[\w:.-]+/g)) {
        const [from, to] = [found.index, found.index + found[0].length];
        const meaning = at >= from && at <= to ? wishes.meaning?.(found[0]) : undefined;
        if (!meaning) continue;
        return {
          pos: line.from + from,
          end: line.from + to,
          create: () => {
            const dom = document.createElement("div");
            dom.className = "promise";
            dom.textContent = meaning;
            return { dom };
          },
        };
      }
      return null;
    });
    const extensions: Extension[] = [
      lineNumbers(),
      history(),
      drawSelection(),
      highlightSelectionMatches(),
      StreamLanguage.define(wishes.language === "shell" ? shell : toml),
      syntaxHighlighting(colours),
      look,
      lintGutter(),
      hover,
      autocompletion({ override: [complete], activateOnTyping: wishes.language === "shell" }),
      // Tab leaves the editor, as everywhere on a page.
      keymap.of([...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
      EditorView.contentAttributes.of({ "aria-label": wishes.label, spellcheck: "false" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) wishes.changed?.(update.state.doc.toString());
      }),
    ];
    this.view = new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
    // What scrolls can be reached by the keyboard.
    this.view.scrollDOM.tabIndex = 0;
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 } });
  }

  /** Marks these places, and no others. */
  mark(marks: Mark[]): void {
    const doc = this.view.state.doc;
    const all: Diagnostic[] = [];
    for (const mark of marks) {
      if (mark.line < 1 || mark.line > doc.lines) continue;
      const line = doc.line(mark.line);
      // Columns count characters, positions UTF-16.
      const units = (count: number) => Array.from(line.text).slice(0, count).join("").length;
      const from = line.from + (mark.column > 0 ? units(mark.column - 1) : 0);
      const to = mark.len > 0 ? line.from + units(mark.column - 1 + mark.len) : line.to;
      const fix = mark.fix;
      all.push({
        from: Math.min(from, doc.length),
        to: Math.min(Math.max(to, from), doc.length),
        severity: mark.level === "error" ? "error" : mark.level === "note" ? "info" : "warning",
        message: mark.message,
        source: mark.source,
        actions: fix ? [{ name: fix.name, apply: (view) => fix.apply(view) }] : undefined,
      });
    }
    all.sort((a, b) => a.from - b.from || a.to - b.to);
    this.view.dispatch(setDiagnostics(this.view.state, all));
  }

  /** Goes to a line. */
  show(line: number): void {
    const doc = this.view.state.doc;
    const at = doc.line(Math.max(1, Math.min(line, doc.lines)));
    this.view.dispatch({ selection: { anchor: at.from, head: at.to }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
    this.view.focus();
  }
}
