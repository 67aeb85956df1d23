// Elements by their words.

type Attributes = Record<string, string | number | boolean | ((event: never) => void) | undefined>;
type Child = Node | string | undefined | null;

function fill(node: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value as EventListener);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== undefined && value !== false) node.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== undefined && child !== null) node.append(child);
}

/** An element of HTML. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

/** An element of SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, attributes, children);
  return node;
}

/** The element of the page with this id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
}

/** Says something to whoever cannot see. */
export function say(text: string): void {
  byId("said").textContent = text;
}

/** `3.7 Mbit/s`. */
export function rate(bits: number | null | undefined): string {
  if (!bits) return "";
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
  let at = 0;
  while (bits >= 1000 && at < 3) {
    bits /= 1000;
    at += 1;
  }
  return `${Number(bits.toPrecision(4))} ${units[at]}`;
}

/** A number with its unit, by the metric's name. */
export function shown(metric: string, value: number): string {
  if (metric.endsWith("_bit_s")) return rate(value) || "0 bit/s";
  if (metric.endsWith("_ms")) return `${Number(value.toPrecision(3))} ms`;
  if (metric.endsWith("_bytes")) return value >= 10000 ? `${Number((value / 1000).toPrecision(3))} kB` : `${Math.round(value)} B`;
  return `${Number(value.toPrecision(4))}`;
}

/** The style of a picture that becomes smaller where there is less room, down to a share of its width; then one scrolls. */
export const fits = (width: number, share: number): string => `max-width:${width}px;min-width:${Math.round(width * share)}px`;

/** Gives a text to the person as a file. */
export function download(name: string, text: string, type = "text/plain"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
