// A run as it went: the network with its queues at a moment, curves with that moment marked, and those of the run before.
import { fits, h, s, shown } from "./dom";

export interface Curve {
  host: string;
  object: string;
  metric: string;
  points: [number, number][];
}
export interface Ran {
  title: string;
  duration_s: number;
  record: string;
  succeeded: boolean;
  report: string;
  outputs: string[];
  warnings: { text: string }[];
  series: Curve[];
  tc: { host: string; dev: string; text: string }[];
}
export interface Link {
  ends: string[] | { host: string; dev: string }[];
  rate_bit_s?: number;
  end_rates_bit_s?: number[];
  delay_ms?: number;
}

/** Where a curve stands at a moment: its last sample before it. */
export function at(points: [number, number][], time: number): number {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= time) low = middle + 1;
    else high = middle;
  }
  return low ? points[low - 1][1] : 0;
}

const [WIDTH, HEIGHT] = [560, 190];
const CHARTS = 16;

function titled(metric: string): string {
  return metric.replace(/_(bit_s|ms|bytes|packets)$/, "").replaceAll("_", " ");
}

/** The curves of one metric of one machine, at most eight in a picture. */
function charts(ran: Ran, before: Ran | undefined): { dom: HTMLElement; move: (time: number) => void }[] {
  const groups = new Map<string, Curve[]>();
  const key = (c: Curve) => `${c.host}|${c.object.split(" ")[0]}|${c.metric}`;
  for (const curve of ran.series) {
    if (!curve.points.some(([, value]) => value > 0)) continue;
    const flows = /^(throughput|rtt_ms|owd|backlog_bytes|drops)/.test(curve.metric);
    if (!flows) continue;
    const group = curve.host ? key(curve) : `|${curve.metric}`;
    groups.set(group, [...(groups.get(group) ?? []), curve]);
  }
  const order = ["rtt", "owd", "backlog", "throughput"];
  const rank = (name: string) => {
    const found = order.findIndex((word) => name.includes(word));
    return found < 0 ? order.length : found;
  };
  const sorted = [...groups].sort((a, b) => rank(a[0]) - rank(b[0]) || b[1].length - a[1].length).slice(0, CHARTS);
  return sorted.map(([, curves]) => chart(curves.slice(0, 8), ran, before));
}

function chart(curves: Curve[], ran: Ran, before: Ran | undefined): { dom: HTMLElement; move: (time: number) => void } {
  const metric = curves[0].metric;
  const same = (a: Curve, b: Curve) => a.host === b.host && a.object === b.object && a.metric === b.metric;
  const old = curves.map((c) => before?.series.find((b) => same(b, c)));
  const top = Math.max(1e-9, ...curves.flatMap((c) => c.points.map((p) => p[1])), ...old.flatMap((c) => c?.points.map((p) => p[1]) ?? []));
  const [left, right, high, low] = [86, WIDTH - 8, 10, HEIGHT - 22];
  const x = (time: number) => left + ((right - left) * time) / ran.duration_s;
  const y = (value: number) => low - ((low - high) * value) / top;
  const path = (points: [number, number][]) => points.map(([t, v], n) => `${n ? "L" : "M"}${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  const grid = [0, 0.5, 1].map((share) =>
    s("g", {}, s("line", { class: "grid", x1: left, x2: right, y1: y(top * share), y2: y(top * share) }), s("text", { x: left - 6, y: y(top * share) + 4, "text-anchor": "end" }, shown(metric, top * share))),
  );
  const times = [0, 0.5, 1].map((share) => s("text", { x: x(ran.duration_s * share), y: HEIGHT - 6, "text-anchor": share === 1 ? "end" : share ? "middle" : "start" }, `${Number((ran.duration_s * share).toPrecision(3))} s`));
  const cursor = s("line", { class: "cursor", y1: high, y2: low, x1: left, x2: left });
  const lines = curves.map((c, n) => s("path", { class: `line c${n}`, d: path(c.points) }));
  const olds = old.map((c, n) => (c ? s("path", { class: `line old c${n}`, d: path(c.points) }) : undefined));
  const host = curves[0].host;
  const title = `${host ? `${host} ` : ""}${host ? curves[0].object.split(" ")[0] : ""} ${titled(metric)}`.trim();
  const picture = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, ...grid, ...times, ...olds, ...lines, cursor);
  const values = curves.map(() => h("span", { class: "value" }));
  const names = curves.map((c) => (host ? c.object.split(" ").slice(1).join(" ") || c.object : c.object) || titled(c.metric));
  const legend = h("ul", { class: "legend" }, ...curves.map((_, n) => h("li", {}, h("span", { class: `dot b${n}`, "aria-hidden": "true" }), names[n], " ", values[n])));
  const caption = h("figcaption", {}, title, old.some(Boolean) ? " (dashed: the run before)" : "");
  const move = (time: number) => {
    cursor.setAttribute("x1", String(x(time)));
    cursor.setAttribute("x2", String(x(time)));
    curves.forEach((c, n) => (values[n].textContent = shown(metric, at(c.points, time))));
  };
  return { dom: h("figure", {}, caption, picture, legend), move };
}

interface RecordRig {
  hosts: { name: string; devices?: { dev: string; addresses?: string[] }[] }[];
  links: Link[];
}

const endOf = (end: unknown): { host: string; dev: string } => {
  if (typeof end === "string") {
    const [host, dev] = end.split(":");
    return { host, dev };
  }
  return end as { host: string; dev: string };
};

/** Most machines that are drawn. */
const HOSTS = 60;

/** The network: machines, wires with what goes over them, queues as bars. */
function network(ran: Ran, chosen: (link: number) => void): { dom: Element; move: (time: number) => void } | undefined {
  const rig = (JSON.parse(ran.record) as { rig: RecordRig }).rig;
  if (rig.hosts.length > HOSTS) return undefined;
  // Columns by distance from the first machine that ends a path.
  const near = new Map<string, Set<string>>(rig.hosts.map((host) => [host.name, new Set<string>()]));
  for (const link of rig.links) {
    const ends = link.ends.map(endOf);
    for (const a of ends) for (const b of ends) if (a.host !== b.host) near.get(a.host)?.add(b.host);
  }
  const column = new Map<string, number>();
  const starts = [...rig.hosts].sort((a, b) => near.get(a.name)!.size - near.get(b.name)!.size);
  for (const start of starts) {
    if (column.has(start.name)) continue;
    column.set(start.name, 0);
    const queue = [start.name];
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      for (const other of near.get(next)!) {
        if (!column.has(other)) {
          column.set(other, column.get(next)! + 1);
          queue.push(other);
        }
      }
    }
  }
  const columns = new Map<number, string[]>();
  for (const [name, at] of column) columns.set(at, [...(columns.get(at) ?? []), name]);
  const tallest = Math.max(...[...columns.values()].map((c) => c.length));
  const place = new Map<string, [number, number]>();
  for (const [at, names] of columns) names.forEach((name, n) => place.set(name, [80 + at * 220, 46 + (n + (tallest - names.length) / 2) * 92]));
  const width = 160 + 220 * (columns.size - 1);
  const height = 92 * tallest + 20;
  const moves: ((time: number) => void)[] = [];
  const wires = rig.links.map((link, number) => {
    const ends = link.ends.map(endOf);
    const points = ends.map((e) => place.get(e.host) ?? [0, 0]);
    const middle = [points.reduce((sum, p) => sum + p[0], 0) / points.length, points.reduce((sum, p) => sum + p[1], 0) / points.length];
    const paths = points.length === 2 ? [`M${points[0]}L${points[1]}`] : points.map((p) => `M${p}L${middle}`);
    const rates = link.end_rates_bit_s ?? (link.rate_bit_s ? [link.rate_bit_s] : []);
    const texts = [...new Set(rates.map((r) => shown("_bit_s", r)))];
    // One unit for both, where it is one: the wire is short.
    const unit = texts[0]?.split(" ")[1];
    const rate = texts.every((t) => t.endsWith(` ${unit}`)) ? texts.map((t, n) => (n < texts.length - 1 ? t.split(" ")[0] : t)).join(" / ") : texts.join(" / ");
    const delay = link.delay_ms ? shown("_ms", link.delay_ms) : "";
    const label = [rate, delay].filter(Boolean).join(", ");
    const words = `link ${ends.map((e) => `${e.host}:${e.dev}`).join(" – ")}${label ? `, ${label}` : ""}`;
    const text = s("text", { x: middle[0], y: middle[1] - 8, class: "link", "text-anchor": "middle" }, rate || delay);
    const below = s("text", { x: middle[0], y: middle[1] + 18, class: "link", "text-anchor": "middle" }, rate && delay ? ` ${delay}` : "");
    const wire = s("g", { class: "wire", tabindex: 0, role: "button", "aria-label": `${words}: change it` }, s("title", {}, words), ...paths.map((d) => s("path", { d })), text, below);
    wire.addEventListener("click", () => chosen(number));
    wire.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      // What it opens has the focus then, and must not take the key too.
      event.preventDefault();
      chosen(number);
    });
    return wire;
  });
  const hosts = rig.hosts.map((host) => {
    const [x, y] = place.get(host.name)!;
    const group = s("g", { class: "host" }, s("rect", { x: x - 60, y: y - 22, width: 120, height: 44, rx: 9 }), s("text", { x, y: y + 5, "text-anchor": "middle", class: "name" }, host.name));
    // Each queue that ever held something: a bar that fills.
    const roots = new Map<string, Curve>();
    for (const c of ran.series) {
      const device = c.object.split(" ")[0];
      // The first qdisc of a device is its root.
      const held = c.host === host.name && c.metric === "backlog_bytes" && !c.object.includes(" class ") && c.points.some((p) => p[1] > 0);
      if (held && !roots.has(device)) roots.set(device, c);
    }
    [...roots.values()].slice(0, 3).forEach((curve, n) => {
      const most = Math.max(...curve.points.map((p) => p[1]));
      const bar = s("rect", { class: `fill b${n}`, x: x - 60, y: y + 25 + n * 9, width: 0, height: 7, rx: 3 });
      const frame = s("rect", { class: "frame", x: x - 60, y: y + 25 + n * 9, width: 120, height: 7, rx: 3 }, s("title", {}, `${curve.object}: at most ${shown(curve.metric, most)} waiting`));
      group.append(frame, bar);
      moves.push((time) => bar.setAttribute("width", String((120 * at(curve.points, time)) / most)));
    });
    return group;
  });
  const picture = s("svg", { class: "net", viewBox: `0 0 ${width} ${height}`, style: fits(width, 0.6), role: "group", "aria-label": "the network" }, ...wires, ...hosts);
  return { dom: picture, move: (time) => moves.forEach((move) => move(time)) };
}

/** Something that happens in a run: when, and in words. */
export interface Happening {
  time: number;
  words: string;
}

/** What begins and ends, and where packets begin to be lost, in the order of time; what happens at one moment is one. */
export function happenings(ran: Ran): Happening[] {
  interface Lived {
    name: string;
    app?: string;
    start_s?: number;
    end_s?: number;
  }
  const record = JSON.parse(ran.record) as { apps?: Lived[]; flows?: Lived[] };
  const all: Happening[] = [];
  const own = (record.flows ?? []).filter((flow) => !flow.app);
  for (const one of [...(record.apps ?? []), ...own]) {
    if (one.start_s !== undefined) all.push({ time: one.start_s, words: `${one.name} begins` });
    if (one.end_s !== undefined) all.push({ time: one.end_s, words: `${one.name} ends` });
  }
  for (const curve of ran.series.filter((c) => c.metric === "drops_packets" && c.host)) {
    let before = 0;
    for (const [time, lost] of curve.points) {
      if (lost > 0 && before <= 0) all.push({ time, words: `${curve.host} ${curve.object} loses packets` });
      before = lost;
    }
  }
  all.sort((a, b) => a.time - b.time || (a.words < b.words ? -1 : 1));
  const joined: Happening[] = [];
  for (const one of all) {
    const last = joined[joined.length - 1];
    if (last && one.time - last.time < 1e-9) last.words += `; ${one.words}`;
    else joined.push({ ...one });
  }
  return joined;
}

/** Everything of a run that moves with its time. */
export function play(ran: Ran, before: Ran | undefined, chosen: (link: number) => void): HTMLElement {
  const net = network(ran, chosen);
  const all = charts(ran, before);
  const times = [...new Set(ran.series.flatMap((c) => c.points.map((p) => p[0])))].sort((a, b) => a - b);
  const slider = h("input", { type: "range", min: 0, max: ran.duration_s, step: ran.duration_s / 1000, value: 0, "aria-label": "moment of the run, seconds" });
  const clock = h("output", {}, "0 s");
  const move = (time: number) => {
    slider.value = String(time);
    slider.setAttribute("aria-valuetext", `${time.toFixed(2)} seconds`);
    clock.textContent = `${time.toFixed(2)} s`;
    net?.move(time);
    for (const one of all) one.move(time);
  };
  slider.addEventListener("input", () => move(Number(slider.value)));
  let playing = 0;
  const button = h("button", { class: "main" }, "Play");
  const stop = () => {
    cancelAnimationFrame(playing);
    playing = 0;
    button.textContent = "Play";
  };
  button.addEventListener("click", () => {
    if (playing) return stop();
    button.textContent = "Pause";
    let last = performance.now();
    if (Number(slider.value) >= ran.duration_s) move(0);
    // A run is played in ten seconds, however long it is.
    const step = (now: number) => {
      const time = Number(slider.value) + ((now - last) / 1000) * (ran.duration_s / 10);
      last = now;
      move(Math.min(time, ran.duration_s));
      if (time >= ran.duration_s || !button.isConnected) return stop();
      playing = requestAnimationFrame(step);
    };
    playing = requestAnimationFrame(step);
  });
  const beside = (forward: boolean) => () => {
    stop();
    const now = Number(slider.value);
    const next = forward ? times.find((t) => t > now + 1e-9) : [...times].reverse().find((t) => t < now - 1e-9);
    move(next ?? (forward ? ran.duration_s : 0));
  };
  const events = happenings(ran);
  const told = h("p", { class: "happening soft", role: "status" });
  const event = (forward: boolean) => () => {
    stop();
    const now = Number(slider.value);
    // The slider stands on thousandths of the run.
    const near = ran.duration_s / 2000;
    const next = forward ? events.find((e) => e.time > now + near) : events.filter((e) => e.time < now - near).pop();
    if (next) move(next.time);
    told.textContent = next ? `${next.time.toFixed(3)} s: ${next.words}` : forward ? "Nothing happens after this moment" : "Nothing happens before this moment";
  };
  const earlier = h("button", { "aria-label": "one event back", click: event(false) }, "⇤");
  const later = h("button", { "aria-label": "one event on", click: event(true) }, "⇥");
  const back = h("button", { "aria-label": "one sample back", click: beside(false) }, "◂");
  const on = h("button", { "aria-label": "one sample on", click: beside(true) }, "▸");
  const controls = h("div", { class: "controls" }, button, earlier, back, on, later, slider, clock);
  const picture = net ? h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "the network" }, net.dom as unknown as Node) : h("p", { class: "soft" }, "A network of so many machines is not drawn; the report below has it.");
  const dom = h("div", { class: "play" }, controls, told, picture, h("div", { class: "charts" }, ...all.map((c) => c.dom)));
  move(0);
  return dom;
}
