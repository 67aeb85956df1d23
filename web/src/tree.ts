// The classes of a device, drawn: each below its parent, with rate and ceiling; arrows to where one borrows.
import { fits, h, rate, s } from "./dom";

export interface Class {
  kind: string;
  id: string;
  parent: string;
  rate_bit_s: number | null;
  ceil_bit_s: number | null;
  prio: number | null;
  borrows: string | null;
  leaf: string | null;
  promise: string[];
  line: number | null;
  command: string | null;
}
export interface Qdisc {
  kind: string;
  handle: string;
  parent: string;
  most_bit_s: number | null;
  line: number | null;
  command: string | null;
}
export interface Device {
  name: string;
  namespace: string;
  mtu: number;
  link_bit_s: number | null;
  qdiscs: Qdisc[];
  classes: Class[];
  filters: number;
}

interface Node {
  title: string;
  lines: string[];
  about: string;
  line: number | null;
  id: string;
  borrows: string | null;
  below: Node[];
  x: number;
  y: number;
}

/** Most boxes that are drawn. */
const MOST = 300;
const [WIDTH, HEIGHT, ACROSS, DOWN] = [136, 60, 40, 12];

const major = (id: string) => id.split(":")[0];

function nodes(device: Device): { roots: Node[]; left: number } {
  let count = 0;
  let left = 0;
  const ids = new Set(device.classes.map((c) => c.id));
  const room = () => (count < MOST ? (count++, true) : (left++, false));
  const qdisc = (q: Qdisc, deep: number): Node => {
    const below: Node[] = [];
    if (deep < 12 && q.handle !== "0:") {
      for (const c of device.classes) {
        if (major(c.id) === major(q.handle) && !ids.has(c.parent) && room()) below.push(klass(c, deep + 1));
      }
      for (const inner of device.qdiscs) {
        const held = major(inner.parent) === major(q.handle) && !ids.has(inner.parent) && inner.handle !== q.handle;
        if (held && inner.parent !== "root" && room()) below.push(qdisc(inner, deep + 1));
      }
    }
    const lines = q.most_bit_s ? [`at most ${rate(q.most_bit_s)}`] : [];
    return { title: `${q.kind} ${q.handle}`, lines, about: q.command ?? "made by the kernel", line: q.line, id: q.handle, borrows: null, below, x: 0, y: 0 };
  };
  const klass = (c: Class, deep: number): Node => {
    const below: Node[] = [];
    if (deep < 12) {
      for (const child of device.classes) if (child.parent === c.id && child.id !== c.id && room()) below.push(klass(child, deep + 1));
      for (const q of device.qdiscs) if (q.parent === c.id && room()) below.push(qdisc(q, deep + 1));
    }
    const lines = [];
    if (c.rate_bit_s) lines.push(`rate ${rate(c.rate_bit_s)}`);
    if (c.ceil_bit_s && c.ceil_bit_s !== c.rate_bit_s) lines.push(`ceil ${rate(c.ceil_bit_s)}`);
    const about = [c.command ?? "", ...c.promise].filter(Boolean).join("\n");
    const prio = c.prio ? ` prio ${c.prio}` : "";
    return { title: `${c.id}${prio}`, lines, about, line: c.line, id: c.id, borrows: c.borrows, below, x: 0, y: 0 };
  };
  const top = device.qdiscs.filter((q) => q.parent === "root" || q.parent === "ingress" || major(q.parent) === "ffff");
  return { roots: top.filter(room).map((q) => qdisc(q, 0)), left };
}

/** The picture; `go` is called with the line of what was chosen. */
export function draw(device: Device, go: (line: number) => void): HTMLElement {
  const { roots, left } = nodes(device);
  let row = 0;
  let width = 0;
  const all = new Map<string, Node>();
  const flat: Node[] = [];
  const place = (node: Node, depth: number) => {
    node.x = depth * (WIDTH + ACROSS) + 2;
    width = Math.max(width, node.x + WIDTH + 2);
    for (const child of node.below) place(child, depth + 1);
    node.y = node.below.length ? (node.below[0].y + node.below[node.below.length - 1].y) / 2 : row++ * (HEIGHT + DOWN) + 2;
    all.set(node.id, node);
    flat.push(node);
  };
  for (const node of roots) place(node, 0);
  const height = Math.max(row, 1) * (HEIGHT + DOWN);
  const lines = s("g", { class: "edges" });
  const arrows = s("g", { class: "borrows" });
  const boxes = s("g", {});
  for (const node of flat) {
    for (const child of node.below) {
      const [x0, y0, x1, y1] = [node.x + WIDTH, node.y + HEIGHT / 2, child.x, child.y + HEIGHT / 2];
      const mid = (x0 + x1) / 2;
      lines.append(s("path", { d: `M${x0} ${y0}C${mid} ${y0} ${mid} ${y1} ${x1} ${y1}` }));
    }
    const lender = node.borrows ? all.get(node.borrows) : undefined;
    if (lender) {
      const [x0, y0, x1, y1] = [node.x, node.y + HEIGHT - 10, lender.x + WIDTH, lender.y + HEIGHT - 10];
      const low = Math.max(y0, y1) + 10;
      arrows.append(s("path", { d: `M${x0} ${y0}C${x0 - 30} ${low} ${x1 + 30} ${low} ${x1 + 3} ${y1}`, "marker-end": "url(#borrow)" }));
    }
    const words = [node.title, ...node.lines].join(" ");
    const box = s(
      "g",
      { class: "box", tabindex: 0, role: "button", "aria-label": `${words}${node.borrows ? ` borrows from ${node.borrows}` : ""}${node.line ? ` go to line ${node.line}` : ""}` },
      s("title", {}, node.about),
      s("rect", { x: node.x, y: node.y, width: WIDTH, height: HEIGHT, rx: 8 }),
      s("text", { x: node.x + 12, y: node.y + 20, class: "name" }, node.title),
      ...node.lines.flatMap((line, at) => [" ", s("text", { x: node.x + 12, y: node.y + 37 + at * 16 }, line)]),
    );
    const chosen = () => node.line && go(node.line);
    box.addEventListener("click", chosen);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        chosen();
      }
    });
    boxes.append(box);
  }
  const arrow = s("marker", { id: "borrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, s("path", { d: "M0 0L8 4L0 8z", class: "head" }));
  const picture = s("svg", { class: "tree", viewBox: `0 0 ${width} ${height}`, style: fits(width, 0.72), role: "group", "aria-label": `queues of ${device.name}` }, s("defs", {}, arrow), lines, arrows, boxes);
  const facts = [`${device.filters} filter${device.filters === 1 ? "" : "s"}`];
  if (device.link_bit_s) facts.push(`line of ${rate(device.link_bit_s)}`);
  if (left) facts.push(`${left} more are not drawn: see the partition`);
  const title = h("h3", {}, `${device.namespace ? `${device.namespace} ` : ""}${device.name}`);
  return h("div", { class: "device" }, title, h("p", { class: "soft" }, facts.join(" · ")), h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `queues of ${device.name}` }, picture));
}
