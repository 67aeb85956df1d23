// The page: three views, links that hold them, files, colours, and what works without a network.
import { quick } from "./ask";
import { byId, h, say } from "./dom";
import { type Files, LabView } from "./lab";
import { LearnView, type Lesson } from "./learn";
import { ScriptView, type ScriptState } from "./script";
import { served, token } from "./served";
import { pack, unpack } from "./share";

interface Material {
  version: string;
  script: string;
  examples: (Files & { title: string })[];
  lessons: Lesson[];
}

const VIEWS = ["script", "lab", "learn"] as const;
type View = (typeof VIEWS)[number];

async function begin(): Promise<void> {
  const warm = quick.warm().catch((fault: unknown) => {
    byId("script-status").textContent = `This browser cannot run it: ${fault instanceof Error ? fault.message : String(fault)}`;
  });
  const material = (await (await fetch("material.json")).json()) as Material;
  let script: ScriptView | undefined;
  let lab: LabView | undefined;
  let learn: LearnView | undefined;
  const home = material.examples.find((e) => e.name === "home-line.toml") ?? material.examples[0];

  const views = {
    script: () => (script ??= new ScriptView(material.script)),
    lab: () => (lab ??= new LabView(home)),
    learn: () =>
      (learn ??= new LearnView(material.lessons, {
        lab: (files) => {
          location.hash = "lab";
          views.lab().open(files);
        },
        script: (text) => {
          location.hash = "script";
          views.script().restore({ text });
        },
      })),
  };

  const show = (view: View, rest: string) => {
    for (const name of VIEWS) {
      byId(name).hidden = name !== view;
      const link = byId(`to-${name}`);
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `Penstock: ${view}`;
    byId("share").hidden = view === "learn";
    if (view === "learn") views.learn().show(rest);
    else views[view]();
  };

  /** `#script`, `#lab`, `#learn=NAME`, `#lab=NAME` of an example, or `#s=…`, a packed state. */
  const route = async () => {
    byId("shared").textContent = "";
    const [word, rest = ""] = location.hash.slice(1).split(/=(.*)/s);
    if (word === "s") {
      const state = (await unpack(rest)) as { view?: View; script?: ScriptState; lab?: Files } | undefined;
      if (state?.view === "script" && typeof state.script?.text === "string") {
        show("script", "");
        views.script().restore(state.script);
      } else if (state?.view === "lab" && typeof state.lab?.text === "string" && Array.isArray(state.lab.files)) {
        show("lab", "");
        views.lab().open(state.lab);
      } else {
        show("script", "");
        byId("shared").textContent = "The link is not whole: nothing could be read from it.";
      }
      return;
    }
    const view = VIEWS.find((v) => v === word) ?? "script";
    show(view, rest);
    if (view === "lab" && rest) {
      const example = material.examples.find((e) => e.name === `${rest}.toml`);
      if (example) {
        byId<HTMLSelectElement>("lab-example").value = example.name;
        views.lab().open(example);
      }
    }
  };

  const select = byId<HTMLSelectElement>("lab-example");
  select.append(...material.examples.map((e) => h("option", { value: e.name }, e.title)));
  select.value = home.name;
  select.addEventListener("change", () => {
    const example = material.examples.find((e) => e.name === select.value);
    if (example) views.lab().open(example);
  });
  byId("share").addEventListener("click", async () => {
    const view = VIEWS.find((name) => !byId(name).hidden) ?? "script";
    const state = view === "lab" ? { view, lab: views.lab().state() } : { view, script: views.script().state() };
    const link = `${location.href.split("#")[0]}#s=${await pack(state)}`;
    history.replaceState(null, "", link);
    try {
      await navigator.clipboard.writeText(link);
      byId("shared").textContent = "The link is copied: it holds all that is here, and no server sees it.";
    } catch {
      byId("shared").textContent = "The link stands in the address line: it holds all that is here.";
    }
    say(byId("shared").textContent!);
  });
  byId("version").textContent = `penstock ${material.version}`;
  byId("to-runs").hidden = !served;
  byId("lab-place").hidden = !token;
  const schemes = ["", "light", "dark"];
  const names = ["as the system", "light", "dark"];
  const colours = byId<HTMLButtonElement>("colours");
  const paint = (scheme: string) => {
    if (scheme) document.documentElement.dataset.scheme = scheme;
    else delete document.documentElement.dataset.scheme;
    colours.textContent = `Colours: ${names[schemes.indexOf(scheme)] ?? names[0]}`;
  };
  paint(localStorage.getItem("scheme") ?? "");
  colours.addEventListener("click", () => {
    const next = schemes[(schemes.indexOf(document.documentElement.dataset.scheme ?? "") + 1) % 3];
    localStorage.setItem("scheme", next);
    paint(next);
  });
  addEventListener("hashchange", () => void route());
  await route();
  if (served && !token) byId("shared").textContent = "Runs are made in this page: the link that penstock serve printed has them made by your computer.";
  await warm;
  document.documentElement.dataset.ready = "yes";
  // Behind penstock serve the page is always at hand, and always that of the program.
  if (!served && "serviceWorker" in navigator && location.protocol.startsWith("http")) {
    await navigator.serviceWorker.register("sw.js").catch(() => undefined);
  }
}

void begin();
