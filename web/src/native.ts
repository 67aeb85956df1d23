// What penstock serve adds where the page comes from it: runs by the native program, and the folder of them.
import { byId, h, say } from "./dom";
import type { Files } from "./lab";

interface Run {
  name: string;
  title: string;
  seed: number;
  ground: string;
  succeeded: boolean;
}

/** The token of the address that was opened, kept for this tab. */
export function keepToken(): void {
  const found = /^#token=([0-9a-f]+)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem("penstock-token", found[1]);
  history.replaceState(null, "", `${location.pathname}#script`);
}

/** Shows the runs where there is a server that has them. */
export async function native(state: () => Files): Promise<void> {
  const token = sessionStorage.getItem("penstock-token");
  if (!token) return;
  const hello = await fetch("api/hello").catch(() => undefined);
  if (!hello?.ok) return;
  byId("native").hidden = false;
  const list = byId("native-runs");
  const show = async () => {
    const { runs } = (await (await fetch("api/runs")).json()) as { runs: Run[] };
    list.replaceChildren(
      ...runs.map((run) => {
        const open = h("button", { click: () => report(run) }, run.name);
        return h("li", {}, open, ` ${run.title}, seed ${run.seed}, ${run.ground}${run.succeeded ? "" : ": not all went well"}`);
      }),
    );
    if (!runs.length) list.replaceChildren(h("li", {}, "There are no runs yet."));
  };
  const report = (run: Run) => {
    const frame = h("iframe", { title: `the report of ${run.name}`, class: "report", sandbox: "", src: `api/runs/${encodeURIComponent(run.name)}/report.html` });
    byId("native-report").replaceChildren(frame);
  };
  const button = byId<HTMLButtonElement>("native-run");
  button.addEventListener("click", async () => {
    const name = byId<HTMLInputElement>("native-name").value.trim();
    button.disabled = true;
    byId("native-status").textContent = "It runs …";
    try {
      const response = await fetch(`api/runs/${encodeURIComponent(name)}`, { method: "POST", headers: { "X-Penstock-Token": token }, body: JSON.stringify(state()) });
      if (!response.ok) throw new Error(await response.text());
      const answer = (await response.json()) as { ok?: { succeeded: boolean }; faults?: { text: string }[] };
      byId("native-status").textContent = answer.faults ? answer.faults.map((f) => f.text).join("\n") : answer.ok?.succeeded ? "All went well." : "An expectation was not met, or a program failed.";
      say(byId("native-status").textContent!);
      await show();
    } catch (fault) {
      byId("native-status").textContent = fault instanceof Error ? fault.message : String(fault);
    } finally {
      button.disabled = false;
    }
  });
  await show();
}
