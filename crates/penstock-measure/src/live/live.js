// Makes the charts of a page live: uPlot draws them, this file gives it the data and the controls.
// Without it, or where it fails, the page shows the pictures it was written with.
(function () {
"use strict";
const root = document.documentElement;
const $ = (tag, attrs, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k === "on") for (const [t, f] of Object.entries(v)) e.addEventListener(t, f);
    else if (v === true) e.setAttribute(k, "");
    else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
};
const colour = name => getComputedStyle(root).getPropertyValue("--" + name).trim();
const rgb = hex => {
  if (hex.length === 4) hex = hex.replace(/[0-9a-f]/gi, "$&$&");
  return [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
};
// A colour laid over the ground: opaque, so that stacked areas do not shine through one another.
const mixed = (over, ground, share) => {
  const [a, b] = [rgb(over), rgb(ground)];
  return "#" + a.map((x, i) => Math.round(x * share + b[i] * (1 - share)).toString(16).padStart(2, "0")).join("");
};

// ---- numbers, as the page's own text writes them: three digits and a prefix ----
const NAMES = { "bit/s": ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], "B": ["B", "kB", "MB", "GB"] };
function scale(unit, max) {
  max = Math.abs(max);
  if (NAMES[unit]) {
    const n = max >= 1e9 ? 3 : max >= 1e6 ? 2 : max >= 1e3 ? 1 : 0;
    return [Math.pow(1000, n), NAMES[unit][n]];
  }
  if (unit === "ms") return max >= 1000 ? [1000, "s"] : max > 0 && max < 1 ? [0.001, "µs"] : [1, "ms"];
  if (unit === "%") return [0.01, "%"];
  return [1, unit];
}
function digits(x, n) {
  if (x === 0 || x == null) return "0";
  const a = Math.abs(x);
  if (a >= 1000 && a < 1e6) return x.toFixed(0);
  return String(Number(x.toPrecision(n || 3)));
}
function show(unit, x) {
  if (x == null || Number.isNaN(x)) return "–";
  const [f, name] = scale(unit, x);
  return digits(x / f) + (name ? " " + name : "");
}

// ---- the data: numbers of 16 bits, 5 of them an exponent, relative to the curve's greatest ----
const head = JSON.parse(document.getElementById("charts-head").textContent);
let bytes = null;
const grids = [];
async function unpack() {
  const text = atob(document.getElementById("charts-bits").textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const floats = new DataView(bytes.buffer);
  let place = 0;
  for (const n of head.grids) {
    const grid = new Float64Array(n);
    for (let i = 0; i < n; i++) grid[i] = floats.getFloat32(place + 4 * i, true);
    place += 4 * n;
    grids.push(grid);
  }
  for (const panel of head.panels) {
    panel.curves.forEach((c, i) => {
      c.i = i;
      c.at = place;
      place += 2 * c.k * (c.t ? 3 : 1);
    });
  }
}
// The low bytes of a curve stand before its high bytes.
function numbers(at, n, max) {
  const out = new Array(n);
  for (let i = 0; i < n; i++) {
    const code = bytes[at + i] | bytes[at + n + i] << 8;
    out[i] = code === 1 ? null : code === 0 ? 0 : max * (2048 + (code & 2047)) / 4095 * Math.pow(2, (code >> 11) - 31);
  }
  return out;
}
function decoded(c) {
  if (c.y) return c;
  c.x = grids[c.g].subarray(c.f, c.f + c.k);
  const all = numbers(c.at, c.k * (c.t ? 3 : 1), c.m);
  c.y = all.slice(0, c.k);
  if (c.t) {
    c.lo = all.slice(c.k, 2 * c.k);
    c.hi = all.slice(2 * c.k);
  }
  return c;
}
// The value of a curve at an instant: the nearest of its samples, none where those are far.
function near(c, t, far) {
  decoded(c);
  let a = 0, b = c.x.length - 1;
  while (b - a > 1) {
    const m = (a + b) >> 1;
    if (c.x[m] < t) a = m; else b = m;
  }
  let at = Math.abs(c.x[a] - t) <= Math.abs(c.x[b] - t) ? a : b;
  if (c.y[at] == null) {
    const other = at === a ? b : a;
    if (c.y[other] == null) return null;
    at = other;
  }
  return Math.abs(c.x[at] - t) > far ? null : c.y[at];
}
function mean(c, from, to) {
  decoded(c);
  let sum = 0, n = 0;
  for (let i = 0; i < c.x.length; i++) {
    if (c.x[i] >= from && c.x[i] <= to && c.y[i] != null) { sum += c.y[i]; n++; }
  }
  return n ? sum / n : null;
}

// ---- what all charts share: the stretch of time, the instant, the search, how many curves ----
const whole = [0, head.seconds];
let shared = whole.slice(), instant = null, search = "", most = head.most || 8;
const charts = [];
let bar = null;

function setView(from, to) {
  const least = head.seconds / 1e5;
  if (to - from < least) { const m = (from + to) / 2; from = m - least / 2; to = m + least / 2; }
  const long = Math.min(to - from, head.seconds);
  from = Math.max(0, Math.min(from, head.seconds - long));
  shared = [from, from + long];
  for (const c of charts) if (c.time && c.plot) c.plot.setScale("x", { min: shared[0], max: shared[1] });
  tell();
}
function tell() {
  if (!bar) return;
  const f = x => digits(x, 5);
  bar.range.textContent = f(shared[0]) + " – " + f(shared[1]) + " s";
  bar.at.textContent = instant == null ? "" : "at " + f(instant) + " s";
  bar.reset.disabled = shared[0] === whole[0] && shared[1] === whole[1];
  for (const c of charts) c.values();
}
const matches = c => {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const name = c.n.toLowerCase();
  return words.every(w => name.includes(w));
};

function save(name, type, data) {
  const url = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
  const a = $("a", { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
const xml = t => t.replace(/[&<>"']/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }[c]));
const cell = t => (/[",\n]/.test(t) ? '"' + t.replace(/"/g, '""') + '"' : t);
function png(svg, name) {
  const size = /width="([\d.]+)" height="([\d.]+)"/.exec(svg);
  const image = new Image();
  image.onload = () => {
    const canvas = $("canvas", { width: 2 * size[1], height: 2 * size[2] });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => save(name, "image/png", blob), "image/png");
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
}

// ---- one chart ----
class Live {
  constructor(panel, figure) {
    Object.assign(this, { panel, figure, log: panel.log, stacked: !!panel.stack && panel.stack > 1, own: new Map() });
    this.time = panel.axis === "time";
    this.order = panel.curves.slice().sort((a, b) => b.w - a.w || a.i - b.i);
    this.seen = false;
    const button = (text, title, f, name) => $("button", { type: "button", title, "aria-label": name || title, on: { click: f } }, text);
    this.unit = $("span", { class: "unit" });
    const tools = $("span", { class: "tools" });
    if (panel.stack) {
      this.stackButton = button("", "stacked areas or lines", () => { this.stacked = !this.stacked; this.build(); });
      tools.append(this.stackButton);
    }
    if (this.time) {
      this.logButton = button("", "linear or logarithmic scale", () => { this.log = !this.log; this.build(); }, "linear or log scale");
      tools.append(this.logButton);
    }
    tools.append(
      button("CSV", "download the data of this chart as CSV", () => save(panel.id + ".csv", "text/csv", this.csv())),
      button("SVG", "download this chart as SVG", () => save(panel.id + ".svg", "image/svg+xml", this.svg())),
      button("PNG", "download this chart as PNG", () => png(this.svg(), panel.id + ".png")));
    this.area = $("div", { class: "plot", tabindex: "0", role: "img", "aria-label": panel.title, on: { keydown: e => this.key(e) } });
    this.legend = $("div", { class: "legend", role: "group", "aria-label": "series of " + panel.title });
    this.live = $("div", { class: "live" },
      $("div", { class: "head" }, $("h3", {}, panel.title), this.unit, tools), this.area, this.legend);
    figure.prepend(this.live);
    new ResizeObserver(() => {
      if (this.plot && this.area.clientWidth && this.area.clientWidth !== this.plot.width) {
        this.plot.setSize({ width: this.area.clientWidth, height: this.height() });
      }
    }).observe(this.area);
  }
  height() { return this.panel.tall || 210; }
  // Which curves are drawn: those that were chosen by hand; else those found, or those with most traffic.
  visible() {
    let chosen;
    if (search) chosen = this.order.filter(matches).slice(0, 200);
    else {
      chosen = [];
      let n = 0;
      for (const c of this.order) {
        if (c.w >= 1e300) chosen.push(c);
        else if (n < most) { chosen.push(c); n++; }
      }
    }
    this.listed = new Set(chosen.map(c => c.i));
    const on = new Set(this.listed);
    for (const [i, yes] of this.own) {
      if (yes) { on.add(i); this.listed.add(i); } else on.delete(i);
    }
    return this.panel.curves.filter(c => on.has(c.i));
  }
  shade(c) { return colour(c.c < 0 ? "ink" : "c" + (c.c % 8)); }
  dash(c) { return c.d ? [5, 4] : c.c >= 8 ? [[8, 3], [2, 3], [8, 3, 2, 3]][(Math.floor(c.c / 8) - 1) % 3] : []; }
  build() {
    const shown = this.visible().map(decoded);
    const { panel } = this;
    this.shown = shown;
    // The sum of all is the upper edge of what is stacked.
    const stacked = this.stacked ? shown.filter(c => c.w < 1e300 && c.s !== "d") : [];
    const flat = shown.filter(c => !stacked.includes(c));
    // Curves of one grid go in together, each at its place.
    const tables = new Map();
    const put = (c, values, key) => {
      if (!tables.has(c.g)) tables.set(c.g, { x: grids[c.g], ys: [], keys: [] });
      const t = tables.get(c.g), y = new Array(t.x.length);
      for (let i = 0; i < values.length; i++) y[c.f + i] = values[i];
      t.ys.push(y);
      t.keys.push(key);
    };
    for (const c of shown) {
      const log = this.log ? v => (v > 0 ? v : null) : v => v;
      put(c, c.y.map(log), c.i);
      if (c.t && flat.includes(c)) { put(c, c.lo.map(log), c.i + "lo"); put(c, c.hi.map(log), c.i + "hi"); }
    }
    const parts = [...tables.values()];
    let data = [[0, 1]], at = new Map();
    if (parts.length) {
      data = parts.length === 1 ? [parts[0].x, ...parts[0].ys] : uPlot.join(parts.map(t => [t.x, ...t.ys]));
      parts.flatMap(t => t.keys).forEach((k, n) => at.set(k, data[n + 1]));
    }
    const x = data[0], columns = [x], series = [{}], bands = [];
    const fill = (c, share) => mixed(this.shade(c), colour("ground"), share);
    let below = null;
    const layers = stacked.map(c => {
      const y = at.get(c.i), sum = new Array(x.length);
      let last = 0;
      for (let i = 0; i < x.length; i++) {
        // Between two samples of its own a curve keeps its last value; outside of its life it is nothing.
        if (y[i] != null) last = y[i]; else if (y[i] === null || x[i] < c.x[0] || x[i] > c.x[c.x.length - 1]) last = 0;
        sum[i] = last + (below ? below[i] : 0);
      }
      below = sum;
      return [c, sum];
    });
    // From the top down: each covers the lower part of the one before.
    for (const [c, sum] of layers.reverse()) {
      columns.push(sum);
      series.push({ label: c.n, stroke: this.shade(c), width: 1, fill: fill(c, 0.45), points: { show: false }, curve: c });
    }
    const wide = this.area.clientWidth || 480;
    for (const c of flat) {
      if (c.t) {
        columns.push(at.get(c.i + "hi"), at.get(c.i + "lo"));
        const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
        series.push({ ...edge }, { ...edge });
        bands.push({ series: [columns.length - 2, columns.length - 1], fill: this.shade(c) + "38" });
      }
      columns.push(at.get(c.i));
      const dots = c.s === "d" && !c.t;
      series.push({
        label: c.n, stroke: this.shade(c), width: c.w >= 1e300 ? 1 : 1.8, dash: this.dash(c), curve: c,
        paths: dots ? () => null : undefined,
        points: dots ? { show: true, size: 4, width: 0, fill: this.shade(c) } : { show: false },
        // Nothing is drawn across a stretch without samples that one can see.
        gaps: (u, si, a, b, gaps) => gaps.filter(g => g[1] - g[0] > 0.04 * wide * devicePixelRatio),
      });
    }
    const ink = colour("soft"), rule = colour("rule");
    const font = "12px system-ui,-apple-system,'Segoe UI',sans-serif";
    const levels = this.levels();
    const unit = panel.unit;
    const naming = (values, max) => {
      const [f, name] = scale(unit, max);
      this.unit.textContent = [name, this.log ? "logarithmic" : ""].filter(Boolean).join(", ");
      return values.map(v => (v == null ? "" : digits(v / f)));
    };
    const decades = this.log ? { filter: (u, vs) => vs.map(v => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6 ? v : null)) } : {};
    const options = {
      width: wide, height: this.height(), series, bands, padding: [10, 12, 0, 0],
      legend: { show: false },
      focus: { alpha: 0.25 },
      cursor: {
        y: false, points: { size: 7 },
        drag: { x: this.time, y: false, setScale: false, dist: 4 },
        sync: this.time ? { key: "time", setSeries: false, filters: { pub: type => type !== "mouseup" && type !== "mousedown" } } : undefined,
        bind: { dblclick: () => () => { if (this.time) setView(whole[0], whole[1]); else this.build(); return null; } },
      },
      scales: {
        x: { time: false, auto: false, min: this.time ? shared[0] : panel.x[0], max: this.time ? shared[1] : panel.x[1] },
        y: this.log
          ? { distr: 3, range: (u, a, b) => (a == null ? [1, 10] : [Math.pow(10, Math.floor(Math.log10(a) + 1e-9)), Math.pow(10, Math.ceil(Math.log10(b) - 1e-9)) * (a === b ? 10 : 1)]) }
          : { range: (u, a, b) => [0, panel.top || Math.max(b || 0, ...levels.map(l => l[1]).filter(y => y < 3 * (b || 1))) * 1.06 || 1] },
      },
      axes: [
        { stroke: ink, font, grid: { show: false }, ticks: { stroke: rule, size: 4 }, size: 30, gap: 4,
          values: (u, vs) => vs.map((v, i) => digits(v, 5) + (i === vs.length - 1 ? " " + panel.xunit : "")) },
        { stroke: ink, font, grid: { stroke: rule, width: 1, ...decades }, ticks: { show: false }, size: 52, gap: 6, ...decades,
          values: (u, vs) => naming(vs, this.log ? Math.sqrt(u.scales.y.min * u.scales.y.max) : u.scales.y.max) },
      ],
      hooks: {
        setCursor: [u => {
          if (!this.time) { this.values(u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null); return; }
          const t = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null;
          if (t !== instant && (u.cursor.event || t == null)) { instant = t; requestTell(); }
        }],
        setSelect: [u => {
          if (!this.time || u.select.width < 4) return;
          const [a, b] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          setView(a, b);
        }],
        draw: [u => {
          const { ctx, bbox } = u;
          ctx.save();
          ctx.strokeStyle = colour("soft");
          ctx.fillStyle = colour("soft");
          ctx.font = 11 * devicePixelRatio + "px system-ui,sans-serif";
          ctx.textAlign = "right";
          for (const [name, y, own] of levels) {
            if (this.log && y <= 0) continue;
            const py = u.valToPos(y, "y", true);
            if (py < bbox.top || py > bbox.top + bbox.height) continue;
            ctx.strokeStyle = own ? this.shade(own) : colour("soft");
            ctx.lineWidth = devicePixelRatio;
            ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
            ctx.beginPath();
            ctx.moveTo(bbox.left, py);
            ctx.lineTo(bbox.left + bbox.width, py);
            ctx.stroke();
            if (name) {
              ctx.lineWidth = 4 * devicePixelRatio;
              ctx.setLineDash([]);
              ctx.strokeStyle = colour("ground");
              ctx.strokeText(name, bbox.left + bbox.width, py - 4 * devicePixelRatio);
              ctx.fillStyle = own ? this.shade(own) : colour("soft");
              ctx.fillText(name, bbox.left + bbox.width, py - 4 * devicePixelRatio);
            }
          }
          ctx.restore();
        }],
      },
    };
    if (this.plot) this.plot.destroy();
    this.plot = new uPlot(options, columns, this.area);
    if (this.logButton) this.logButton.textContent = this.log ? "linear" : "log";
    if (this.stackButton) this.stackButton.textContent = this.stacked ? "lines" : "stacked";
    this.name();
    this.list();
    this.values();
  }
  // Marks across the chart: the panel's, and as lines each shown class's promised rate and ceiling where few are shown.
  levels() {
    const all = this.panel.levels.map(l => [l[0], l[1], null]);
    const own = this.shown.filter(c => c.r || c.l);
    if (!this.stacked && own.length <= 4) {
      for (const c of own) {
        if (c.r) all.push([c.n + " rate " + show(this.panel.unit, c.r), c.r, c]);
        if (c.l && c.l !== c.r && !all.some(l => l[1] === c.l)) all.push([c.n + " ceil " + show(this.panel.unit, c.l), c.l, c]);
      }
    }
    return all;
  }
  name() {
    const parts = this.shown.slice(0, 8).map(c => c.n + ", mean " + show(this.panel.unit, mean(c, -Infinity, Infinity)));
    this.area.setAttribute("aria-label", this.panel.title + ". " + parts.join("; ") + ". Arrow keys move the cursor, plus and minus zoom.");
  }
  list() {
    const entry = c => {
      const on = this.shown.includes(c);
      const value = $("b");
      const e = $("button", {
        type: "button", "aria-pressed": String(on), title: c.n + ": click shows or hides it, double click shows it alone",
        on: {
          click: () => { this.own.set(c.i, !this.shown.includes(c)); this.build(); },
          dblclick: () => {
            this.panel.curves.forEach(o => this.own.set(o.i, o === c));
            this.build();
          },
          mouseenter: () => this.focus(c), mouseleave: () => this.focus(null),
        },
      }, $("i", { class: c.s === "d" ? "dot" : c.d ? "dash" : "", style: "color:" + this.shade(c) }), $("span", {}, c.n), value);
      this.cells.set(c.i, value);
      return e;
    };
    this.cells = new Map();
    const open = this.more && this.more.open;
    const listed = this.order.filter(c => this.listed.has(c.i));
    const rest = this.order.length - listed.length;
    const nodes = listed.map(entry);
    if (!listed.length) nodes.push($("span", { class: "none" }, "no series matches the search"));
    this.more = null;
    if (rest > 0 || this.own.size) {
      const back = $("button", { type: "button", class: "back", on: { click: () => { this.own.clear(); this.build(); } } }, "choose by traffic again");
      const box = $("div", { class: "all" });
      const fillBox = () => {
        if (box.firstChild) return;
        if (this.own.size) box.append(back);
        for (const c of this.order) {
          const check = $("input", { type: "checkbox", on: { change: () => { this.own.set(c.i, check.checked); this.build(); } } });
          check.checked = this.shown.includes(c);
          box.append($("label", {}, check, " ", c.n, " ", $("small", {}, show(this.panel.unit, mean(c, -Infinity, Infinity)))));
        }
      };
      const text = rest > 0 ? "and " + rest.toLocaleString("en") + " more: choose" : "choose";
      this.more = $("details", { on: { toggle: () => { if (this.more.open) fillBox(); } } }, $("summary", {}, text), box);
      if (open) { this.more.open = true; fillBox(); }
      nodes.push(this.more);
    }
    this.legend.replaceChildren(...nodes);
  }
  focus(c) {
    if (!this.plot) return;
    const at = c ? this.plot.series.findIndex(s => s.curve === c) : -1;
    this.plot.setSeries(at > 0 ? at : null, { focus: true });
  }
  // The numbers of the legend: at the cursor, or the means of what is in view.
  values(at) {
    if (!this.plot || !this.seen) return;
    const t = this.time ? instant : at;
    const far = (this.time ? shared[1] - shared[0] : this.panel.x[1]) / 20;
    for (const c of this.shown) {
      const e = this.cells.get(c.i);
      if (!e) continue;
      if (t != null) e.textContent = show(this.panel.unit, near(c, t, far));
      else e.textContent = this.time ? "⌀ " + show(this.panel.unit, mean(c, shared[0], shared[1])) : "";
      e.className = t == null ? "mean" : "";
    }
  }
  key(e) {
    const u = this.plot;
    if (!u) return;
    const wide = u.over.clientWidth, step = e.shiftKey ? wide / 10 : Math.max(1, wide / 100);
    const move = by => {
      const left = Math.max(0, Math.min(wide, (u.cursor.left < 0 ? wide / 2 : u.cursor.left) + by));
      u.setCursor({ left, top: 10 });
      if (this.time) {
        instant = u.posToVal(left, "x");
        for (const c of charts) if (c !== this && c.time && c.plot) c.plot.setCursor({ left: c.plot.valToPos(instant, "x"), top: 10 }, false);
        tell();
      }
      const said = this.shown.slice(0, 8).map(c => c.n + " " + (this.cells.get(c.i) || {}).textContent);
      if (bar) bar.said.textContent = (this.time ? digits(instant, 5) + " s: " : "") + said.join(", ");
    };
    const long = shared[1] - shared[0], mid = instant == null ? (shared[0] + shared[1]) / 2 : instant;
    if (e.key === "ArrowLeft") move(-step);
    else if (e.key === "ArrowRight") move(step);
    else if (this.time && e.key === "+") setView(mid - long / 4, mid + long / 4);
    else if (this.time && e.key === "-") setView(mid - long, mid + long);
    else if (this.time && (e.key === "0" || e.key === "Escape")) setView(whole[0], whole[1]);
    else return;
    e.preventDefault();
  }
  csv() {
    const shown = this.shown, rows = new Map();
    const columns = [this.time ? "time_s" : "x_" + this.panel.xunit];
    let n = 0;
    const put = (c, values, name) => {
      columns.push(name);
      n++;
      for (let i = 0; i < values.length; i++) {
        if (values[i] == null) continue;
        const key = c.x[i];
        if (!rows.has(key)) rows.set(key, []);
        rows.get(key)[n - 1] = Number(values[i].toPrecision(4));
      }
    };
    for (const c of shown) {
      put(c, c.y, c.n + " [" + this.panel.unit + "]");
      if (c.t) { put(c, c.lo, c.n + " min"); put(c, c.hi, c.n + " max"); }
    }
    const lines = [...rows.keys()].sort((a, b) => a - b).map(x => {
      const row = rows.get(x);
      return [Number(x.toPrecision(7)), ...Array.from({ length: n }, (_, i) => (row[i] == null ? "" : row[i]))].join(",");
    });
    return columns.map(cell).join(",") + "\n" + lines.join("\n") + "\n";
  }
  // The chart as it is shown now.
  svg() {
    const u = this.plot, W = Math.max(560, u.width), left = 56, right = W - 12, top = 34;
    const [x0, x1] = [u.scales.x.min, u.scales.x.max], [y0, y1] = [u.scales.y.min, u.scales.y.max];
    const high = 220, bottom = top + high;
    const X = v => left + (v - x0) / (x1 - x0) * (right - left);
    const Y = v => bottom - (this.log ? Math.log10(v / y0) / Math.log10(y1 / y0) : (v - y0) / (y1 - y0)) * high;
    const [ink, soft, rule, ground] = ["ink", "soft", "rule", "ground"].map(colour);
    const f = v => v.toFixed(1);
    let out = "", lx = 0, ly = bottom + 46;
    const text = (x, y, s, more) => '<text x="' + f(x) + '" y="' + f(y) + '" ' + (more || 'fill="' + soft + '"') + ">" + xml(s) + "</text>";
    const [factor] = scale(this.panel.unit, this.log ? Math.sqrt(y0 * y1) : y1);
    const ys = [];
    if (this.log) for (let v = y0; v <= y1 * 1.001; v *= 10) ys.push(v);
    else { const s = step(y1 / factor / 5) * factor; for (let v = 0; v <= y1; v += s) ys.push(v); }
    for (const v of ys) out += '<path d="M' + left + " " + f(Y(v)) + "H" + right + '" stroke="' + rule + '"/>' + text(left - 8, Y(v) + 4, digits(v / factor), 'fill="' + soft + '" text-anchor="end"');
    const sx = step((x1 - x0) / 8);
    for (let v = Math.ceil(x0 / sx) * sx; v <= x1 * 1.000001; v += sx) out += '<path d="M' + f(X(v)) + " " + bottom + 'v4" stroke="' + soft + '"/>' + text(X(v), bottom + 18, digits(v, 5) + (v + sx > x1 ? " " + this.panel.xunit : ""), 'fill="' + soft + '" text-anchor="middle"');
    out += '<path d="M' + left + " " + bottom + "H" + right + '" stroke="' + soft + '"/><clipPath id="c"><rect x="' + left + '" y="' + (top - 4) + '" width="' + (right - left) + '" height="' + (high + 8) + '"/></clipPath><g clip-path="url(#c)">';
    const xs = u.data[0];
    u.series.forEach((s, n) => {
      const c = s.curve, ys = u.data[n];
      if (!n || !c) return;
      let d = "", pen = false, dots = "", first = null, last = null;
      for (let i = 0; i < xs.length; i++) {
        const v = ys[i];
        if (v == null) { if (v === null && pen && (xs[i + 1] - xs[i]) > (x1 - x0) * 0.04) pen = false; continue; }
        if (xs[i] < x0 - (x1 - x0) || xs[i] > x1 + (x1 - x0)) continue;
        d += (pen ? "L" : "M") + f(X(xs[i])) + " " + f(Y(v));
        dots += "M" + f(X(xs[i])) + " " + f(Y(v)) + "h0";
        if (first == null) first = xs[i];
        last = xs[i];
        pen = true;
      }
      if (first == null) return;
      if (s.fill) out += '<path d="' + d + "L" + f(X(last)) + " " + bottom + "L" + f(X(first)) + " " + bottom + 'Z" fill="' + mixed(this.shade(c), ground, 0.45) + '"/>';
      if (c.s === "d" && !c.t) out += '<path d="' + dots + '" stroke="' + this.shade(c) + '" stroke-width="4" stroke-linecap="round" fill="none"/>';
      else out += '<path d="' + d + '" stroke="' + this.shade(c) + '" stroke-width="1.8" fill="none" stroke-linejoin="round"' + (this.dash(c).length ? ' stroke-dasharray="' + this.dash(c).join(" ") + '"' : "") + "/>";
    });
    out += "</g>";
    for (const [name, y, own] of this.levels()) {
      if (!(y >= y0 && y <= y1)) continue;
      const shade = own ? this.shade(own) : soft;
      out += '<path d="M' + left + " " + f(Y(y)) + "H" + right + '" stroke="' + shade + '" stroke-dasharray="4 4"/>' + text(right, Y(y) - 4, name, 'fill="' + shade + '" text-anchor="end"');
    }
    for (const c of this.shown) {
      const wide = 30 + 7 * c.n.length;
      if (lx > 0 && lx + wide > W) { lx = 0; ly += 18; }
      out += '<path d="M' + (lx + 4) + " " + (ly - 4) + 'h14" stroke="' + this.shade(c) + '" stroke-width="3"/>' + text(lx + 24, ly, c.n);
      lx += wide;
    }
    const title = '<text x="4" y="16" fill="' + ink + '" font-weight="600" font-size="14">' + xml(this.panel.title) + '<tspan fill="' + soft + '" font-weight="400">  ' + xml(this.unit.textContent) + "</tspan></text>";
    return '<svg xmlns="http://www.w3.org/2000/svg" width="' + W + '" height="' + (ly + 12) + '" viewBox="0 0 ' + W + " " + (ly + 12) + '" font-family="system-ui,sans-serif" font-size="12"><rect width="100%" height="100%" fill="' + ground + '"/>' + title + out + "</svg>\n";
  }
}
function step(rough) {
  const p = Math.pow(10, Math.floor(Math.log10(rough)));
  return p * [1, 2, 5, 10].find(m => p * m >= rough * 0.999);
}
let asked = false;
function requestTell() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; tell(); });
}

// ---- pictures that stay as they are: their data is in the table below them ----
function still(figure) {
  const svg = figure.querySelector("svg"), table = figure.querySelector("table"), name = figure.id;
  const own = () => {
    const copy = svg.cloneNode(true), box = svg.viewBox.baseVal;
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", box.height);
    const variables = ["ink", "soft", "rule", "ground", ...Array.from({ length: 8 }, (_, i) => "c" + i)].map(v => "--" + v + ":" + colour(v)).join(";");
    const rules = [...document.querySelectorAll("style[data-charts]")].map(s => s.textContent).join("");
    copy.prepend($("style", {}, "svg{" + variables + ";background:var(--ground)}" + rules));
    return new XMLSerializer().serializeToString(copy).replace(/^<svg([^>]*?) width="([^"]*)"([^>]*?) height="([^"]*)"/, '<svg width="$2" height="$4"$1$3');
  };
  const csv = () => [...table.rows].map(r => [...r.cells].map(c => cell(c.dataset.v || c.textContent)).join(",")).join("\n") + "\n";
  const button = (text, title, f) => $("button", { type: "button", title, "aria-label": title, on: { click: f } }, text);
  const tools = $("div", { class: "tools still-tools" });
  if (table) tools.append(button("CSV", "download the data of this chart as CSV", () => save(name + ".csv", "text/csv", csv())));
  tools.append(button("SVG", "download this chart as SVG", () => save(name + ".svg", "image/svg+xml", own())),
    button("PNG", "download this chart as PNG", () => png(own(), name + ".png")));
  figure.prepend(tools);
}

function controls() {
  const b = (text, title, f) => $("button", { type: "button", title, "aria-label": title, on: { click: f } }, text);
  const long = () => shared[1] - shared[0], mid = () => (shared[0] + shared[1]) / 2;
  const input = $("input", { type: "search", placeholder: "find series", "aria-label": "find series by name", on: { input: () => { search = input.value.trim(); rebuild(); } } });
  const counts = [5, 8, 20, 50, 100000].filter((n, i, all) => i < 2 || all[i - 1] < head.curves);
  const select = $("select", { "aria-label": "how many series each chart shows, by traffic", on: { change: () => { most = +select.value; for (const c of charts) c.own.clear(); rebuild(); } } },
    ...counts.map(n => $("option", { value: n, selected: n === most }, n > 1000 ? "all series" : "top " + n)));
  bar = { range: $("span", { class: "range" }), at: $("span", { class: "at" }), said: $("span", { class: "sr", "aria-live": "polite" }) };
  bar.reset = b("whole run", "show the whole run", () => setView(whole[0], whole[1]));
  const time = head.panels.some(p => p.axis === "time");
  const zoom = $("span", { class: "zoom" }, b("◀", "earlier", () => setView(shared[0] - long() / 2, shared[1] - long() / 2)),
    b("−", "zoom out", () => setView(mid() - long(), mid() + long())), b("+", "zoom in", () => setView(mid() - long() / 4, mid() + long() / 4)),
    b("▶", "later", () => setView(shared[0] + long() / 2, shared[1] + long() / 2)), bar.reset, bar.range, bar.at);
  const e = $("div", { class: "controls", role: "toolbar", "aria-label": "all charts" }, ...(time ? [zoom] : []), $("span", { class: "pick" }, input, select), bar.said);
  e.title = "Drag in a chart to zoom, double click for the whole run.";
  return e;
}
function rebuild() { for (const c of charts) if (c.plot) c.build(); tell(); }

async function start() {
  await unpack();
  const figures = [...document.querySelectorAll("figure[data-panel]")];
  if (!figures.length) return;
  // Before the section of the first charts, so that it stays in sight in all that follow.
  const first = (document.querySelector("[data-bar]") || figures[0]).closest("section");
  first.before(controls());
  const watcher = new IntersectionObserver(entries => {
    for (const e of entries) {
      const chart = charts.find(c => c.figure === e.target);
      chart.seen = e.isIntersecting;
      if (!e.isIntersecting) continue;
      if (!chart.plot) chart.build(); else chart.values();
    }
  }, { rootMargin: "300px" });
  for (const figure of figures) charts.push(new Live(head.panels[+figure.dataset.panel], figure));
  root.classList.add("js");
  charts.forEach((c, i) => { if (i < 2) { c.seen = true; c.build(); } watcher.observe(c.figure); });
  document.querySelectorAll("figure[data-still]").forEach(still);
  tell();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
  window.penstock = { charts, setView, view: () => shared.slice(), instant: () => instant };
}
start();
})();
