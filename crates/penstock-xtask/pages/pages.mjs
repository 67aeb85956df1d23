// Tries pages of penstock in a real Chromium: node pages.mjs CHROMIUM OUT PAGE...
// Each control must do what it says; nothing may be logged as an error; nothing may be asked of a network. Screenshots go to OUT.
import puppeteer from "puppeteer-core";
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, out, ...pages] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ["--no-sandbox", "--force-color-profile=srgb", "--font-render-hinting=none", "--hide-scrollbars"],
});
const faults = [];
let place = "";
const check = (what, holds, seen) => {
  if (!holds) faults.push(place + ": " + what + (seen === undefined ? "" : " (seen: " + JSON.stringify(seen) + ")"));
};
const settle = ms => new Promise(r => setTimeout(r, ms || 120));

async function open(file, how = {}) {
  const page = await browser.newPage();
  page.on("console", m => { if (m.type() === "error" || m.type() === "warn") check("a message on the console", false, m.text()); });
  page.on("pageerror", e => check("an error in the page", false, e.message));
  page.on("request", r => check("a request that leaves the page", /^(file|data|blob):/.test(r.url()), r.url()));
  await page.setViewport({ width: 1180, height: 900, deviceScaleFactor: 1, ...how.view });
  if (how.dark) await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  if (how.noScript) await page.setJavaScriptEnabled(false);
  await page.goto(pathToFileURL(resolve(file)).href);
  if (!how.noScript && await page.$("#charts-head")) {
    await page.waitForFunction("window.penstock && document.documentElement.classList.contains('js')");
  }
  return page;
}
// Every chart is made once it has come into view.
async function scrolled(page) {
  const high = await page.evaluate("document.documentElement.scrollHeight");
  for (let y = 0; y < high; y += 700) {
    await page.evaluate(y => scrollTo(0, y), y);
    await settle(60);
  }
  await page.evaluate(() => scrollTo(0, 0));
  await settle();
}
const state = page => page.evaluate(() => ({
  view: penstock.view(), instant: penstock.instant(),
  charts: penstock.charts.map(c => ({
    id: c.panel.id, time: c.time, made: !!c.plot, log: c.log, stacked: c.stacked, unit: c.unit.textContent, shown: c.shown ? c.shown.map(s => s.n) : [],
    x: c.plot ? [c.plot.scales.x.min, c.plot.scales.x.max] : null, distr: c.plot ? c.plot.scales.y.distr : 0, left: c.plot ? c.plot.cursor.left : -1,
  })),
}));
const button = (page, chart, label) => page.evaluateHandle((i, l) => [...penstock.charts[i].live.querySelectorAll(".tools button")].find(b => b.getAttribute("aria-label").startsWith(l)), chart, label);
const tool = (page, label) => page.evaluateHandle(l => [...document.querySelectorAll(".controls button")].find(b => b.getAttribute("aria-label") === l), label);
const near = (a, b) => Math.abs(a - b) < 1e-6 * Math.max(1, Math.abs(a));

async function controls(page) {
  await scrolled(page);
  let s = await state(page);
  const whole = s.view;
  const charts = s.charts;
  check("every figure is a chart", charts.length === await page.$$eval("figure[data-panel]", f => f.length));
  check("every chart is made when it is scrolled to", charts.every(c => c.made), charts.filter(c => !c.made).map(c => c.id));
  check("pictures are hidden where charts are live", await page.$$eval(".static", all => all.every(e => getComputedStyle(e).display === "none")));
  const timed = charts.map((c, i) => [c, i]).filter(([c]) => c.time);
  if (!timed.length) return;
  const at = timed[0][1];
  const over = async i => {
    const e = await page.evaluateHandle(i => penstock.charts[i].plot.over, i);
    await e.evaluate(e => e.scrollIntoView({ block: "center" }));
    await settle();
    return e.boundingBox();
  };

  // Hover: one instant on all charts, and its values in the legends.
  let box = await over(at);
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2);
  await settle();
  s = await state(page);
  const want = whole[0] + 0.6 * (whole[1] - whole[0]);
  check("hovering sets the instant", s.instant !== null && Math.abs(s.instant - want) < 0.02 * (whole[1] - whole[0]), s.instant);
  check("all charts over time show the cursor", s.charts.filter(c => c.time).every(c => c.left > 0), s.charts.map(c => c.left));
  const values = await page.evaluate(i => [...penstock.charts[i].cells.values()].map(v => v.textContent), at);
  check("the legend shows values at the cursor", values.length > 0 && values.some(v => /\d/.test(v)) && values.every(v => !v.startsWith("⌀")), values);
  await page.mouse.move(2, 2);
  await settle();
  check("leaving takes the cursor away", (await state(page)).instant === null);

  // Dragging zooms all charts; a double click shows the whole run.
  box = await over(at);
  await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50, { steps: 6 });
  await page.mouse.up();
  await settle();
  s = await state(page);
  const long = whole[1] - whole[0];
  check("dragging zooms", Math.abs(s.view[0] - whole[0] - 0.25 * long) < 0.02 * long && Math.abs(s.view[1] - whole[0] - 0.5 * long) < 0.02 * long, s.view);
  check("all charts zoom together", s.charts.filter(c => c.time).every(c => near(c.x[0], s.view[0]) && near(c.x[1], s.view[1])), s.charts.map(c => c.x));
  await page.mouse.click(box.x + box.width * 0.5, box.y + 40, { count: 2 });
  await settle();
  check("a double click shows the whole run", near((await state(page)).view[1], whole[1]) && near((await state(page)).view[0], whole[0]));

  // The buttons for all charts.
  const press = async label => { await (await tool(page, label)).click(); await settle(); return (await state(page)).view; };
  let v = await press("zoom in");
  check("+ halves the stretch", near(v[1] - v[0], long / 2), v);
  const before = v;
  v = await press("earlier");
  check("◀ goes back", v[0] < before[0], v);
  v = await press("later");
  check("▶ goes on", near(v[0] + v[1], before[0] + before[1]) || v[0] > before[0] - long / 4, v);
  v = await press("zoom out");
  check("− doubles it", near(v[1] - v[0], long), v);
  await press("zoom in");
  v = await press("show the whole run");
  check("the whole run comes back", near(v[0], whole[0]) && near(v[1], whole[1]), v);

  // The keyboard.
  await page.evaluate(i => penstock.charts[i].area.focus(), at);
  await page.keyboard.press("ArrowRight");
  await settle();
  s = await state(page);
  check("an arrow key sets the cursor", s.instant !== null);
  check("what it stands on is said", /\d/.test(await page.$eval(".controls .sr", e => e.textContent)));
  await page.keyboard.press("+");
  await settle();
  check("the plus key zooms", near((await state(page)).view[1] - (await state(page)).view[0], long / 2));
  await page.keyboard.press("Escape");
  await settle();
  check("Escape shows the whole run", near((await state(page)).view[1], whole[1]));

  // Linear and logarithmic, and said.
  for (const times of [1, 2]) {
    const was = (await state(page)).charts[at];
    await (await button(page, at, "linear")).click();
    await settle();
    const is = (await state(page)).charts[at];
    check("the scale changes", is.log !== was.log && (is.distr === 3) === is.log, [was.log, is.log, is.distr, times]);
    check("the scale is said", is.unit.includes("logarithmic") === is.log, is.unit);
  }
  // Areas and lines.
  const stackable = await page.evaluate(() => penstock.charts.findIndex(c => c.stackButton));
  if (stackable >= 0) {
    const was = (await state(page)).charts[stackable].stacked;
    await (await button(page, stackable, "stacked")).click();
    await settle();
    check("areas become lines, or lines areas", (await state(page)).charts[stackable].stacked !== was);
    const sums = await page.evaluate(i => {
      const c = penstock.charts[i];
      if (!c.stacked) { c.stacked = true; c.build(); }
      const layers = c.plot.data.filter((_, n) => c.plot.series[n].fill);
      return layers.length < 2 || layers[0].every((y, i) => !(y < layers[1][i]));
    }, stackable);
    check("stacked areas add up", sums);
    if (!was) await page.evaluate(i => { const c = penstock.charts[i]; c.stacked = false; c.build(); }, stackable);
  }

  // The legend.
  const many = (await state(page)).charts.findIndex(c => c.time && c.shown.length > 1);
  if (many >= 0) {
    const was = (await state(page)).charts[many].shown;
    const entry = () => page.evaluateHandle(i => penstock.charts[i].legend.querySelector("button"), many);
    const name = await (await entry()).evaluate(e => e.querySelector("span").textContent);
    await (await entry()).evaluate(e => e.scrollIntoView({ block: "center" }));
    await (await entry()).click();
    await settle();
    let is = (await state(page)).charts[many].shown;
    check("a click in the legend hides a series", is.length === was.length - 1 && !is.includes(name), is);
    check("and says so", await (await entry()).evaluate(e => e.getAttribute("aria-pressed")) === "false");
    await (await entry()).click();
    await settle();
    is = (await state(page)).charts[many].shown;
    check("another shows it again", is.length === was.length, is);
    // The search.
    const word = was[was.length - 1];
    await page.evaluate(i => { penstock.charts[i].own.clear(); }, many);
    await page.type(".controls input", word);
    await settle();
    is = (await state(page)).charts[many].shown;
    check("the search finds a series", is.includes(word) && is.every(n => word.toLowerCase().split(/\s+/).every(w => n.toLowerCase().includes(w))), is);
    await page.type(".controls input", "§§§");
    await settle();
    check("the search finds nothing where there is nothing", (await state(page)).charts.every(c => c.shown.length === 0));
    check("and says so", await page.evaluate(i => penstock.charts[i].legend.textContent.includes("no series matches"), many));
    await page.evaluate(() => { const e = document.querySelector(".controls input"); e.value = ""; e.dispatchEvent(new Event("input")); });
    await settle();
    check("without a search all is as before", (await state(page)).charts[many].shown.length === was.length);
  }
  // How many series.
  const counts = await page.$$eval(".controls select option", o => o.map(e => e.value));
  for (const n of [counts[counts.length - 1], counts[0], "8"]) {
    await page.select(".controls select", n);
    await settle(300);
    const wrong = await page.evaluate(n => penstock.charts.filter(c => c.plot && c.shown.filter(s => s.w < 1e300).length !== Math.min(n, c.panel.curves.filter(s => s.w < 1e300).length)).map(c => c.panel.id), +n);
    check("each chart shows the " + n + " series with most traffic", wrong.length === 0, wrong);
  }
  // The rest on demand.
  const more = await page.evaluate(() => penstock.charts.findIndex(c => c.more));
  if (more >= 0) {
    const was = (await state(page)).charts[more].shown.length;
    const added = await page.evaluate(i => {
      const c = penstock.charts[i];
      c.more.open = true;
      return new Promise(r => setTimeout(() => {
        const off = [...c.more.querySelectorAll("input")].find(e => !e.checked);
        if (!off) return r(null);
        off.click();
        r(true);
      }, 100));
    }, more);
    await settle();
    if (added) check("a series that was not shown can be chosen", (await state(page)).charts[more].shown.length === was + 1);
    await page.evaluate(() => { for (const c of penstock.charts) { c.own.clear(); if (c.plot) c.build(); } });
  }

  // Downloads.
  const folder = resolve(out, "downloads");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const client = await page.createCDPSession();
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
  const get = async (handle, name, says) => {
    await handle.evaluate(e => e.scrollIntoView({ block: "center" }));
    await settle();
    await handle.click();
    for (let i = 0; i < 60 && !readdirSync(folder).includes(name); i++) await settle(100);
    check(name + " is downloaded", readdirSync(folder).includes(name), readdirSync(folder));
    if (readdirSync(folder).includes(name)) says(readFileSync(join(folder, name)));
  };
  const id = charts[at].id;
  await get(await button(page, at, "download the data"), id + ".csv", bytes => {
    const rows = bytes.toString().trim().split("\n");
    check("the CSV has a row for each instant", rows[0].startsWith("time_s,") && rows.length > 10, rows.slice(0, 2));
    check("its rows are as long as its head", rows.every(r => r.split(",").length === rows[0].split(",").length || r.includes('"') || rows[0].includes('"')));
  });
  await get(await button(page, at, "download this chart as SVG"), id + ".svg", bytes => {
    check("the SVG is one", bytes.toString().startsWith("<svg xmlns=") && !/NaN|undefined|Infinity/.test(bytes.toString()));
  });
  await get(await button(page, at, "download this chart as PNG"), id + ".png", bytes => check("the PNG is one", bytes.length > 3000 && bytes.subarray(1, 4).toString() === "PNG"));
  const still = await page.$("figure[data-still]");
  if (still) {
    const name = await still.evaluate(e => e.id);
    const of = l => still.evaluateHandle((e, l) => [...e.querySelectorAll(".still-tools button")].find(b => b.textContent === l), l);
    await get(await of("CSV"), name + ".csv", bytes => check("the still's CSV has rows", bytes.toString().trim().split("\n").length > 1));
    await get(await of("SVG"), name + ".svg", bytes => check("the still's SVG is one", bytes.toString().startsWith("<svg") && bytes.toString().includes("--ink:")));
    await get(await of("PNG"), name + ".png", bytes => check("the still's PNG is one", bytes.length > 2000));
  }
}

async function shot(page, name) {
  await page.screenshot({ path: join(out, name + ".png"), fullPage: true });
}

for (const file of pages) {
  place = basename(resolve(file, "..")) + "/" + basename(file);
  const name = place.replace(/[^A-Za-z0-9]+/g, "-").replace(/-html$/, "");
  let page = await open(file);
  const took = await page.evaluate("Math.round(performance.now())");
  console.log(place + ": " + Math.round(statSync(file).size / 1000) + " kB, " + took + " ms until its charts were there");
  const live = await page.$("#charts-head");
  await scrolled(page);
  await shot(page, name + "-light");
  await page.screenshot({ path: join(out, name + "-top.png"), clip: { x: 0, y: 0, width: 1180, height: 1400 } });
  if (live) await controls(page);
  // Everything that one can press has a name, and every picture says what it shows.
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, input:not([type=checkbox]), [role=img]")].filter(e => !(e.getAttribute("aria-label") || e.textContent.trim())).map(e => e.outerHTML.slice(0, 120)));
  check("everything has a name", nameless.length === 0, nameless);
  // On paper: the pictures.
  await page.emulateMediaType("print");
  check("on paper the pictures are shown", await page.$$eval(".static", all => all.every(e => getComputedStyle(e).display !== "none")));
  check("on paper nothing is left of the controls", await page.$$eval(".live, .controls, .tools", all => all.every(e => getComputedStyle(e).display === "none" || !e.offsetParent)));
  await page.pdf({ path: join(out, name + ".pdf"), format: "A4" });
  await page.close();

  page = await open(file, { dark: true });
  await scrolled(page);
  if (live) {
    const shades = await page.evaluate(() => [penstock.charts[0].shade({ c: 0 }), getComputedStyle(document.documentElement).getPropertyValue("--ground").trim()]);
    check("the dark page has dark colours", shades[0] === "#4fa9e8" && shades[1] === "#12161c", shades);
  }
  await shot(page, name + "-dark");
  await page.close();

  page = await open(file, { view: { width: 390, height: 800, deviceScaleFactor: 2, isMobile: true, hasTouch: true } });
  await scrolled(page);
  const wide = await page.evaluate("document.documentElement.scrollWidth");
  check("a phone needs not scroll sideways", wide <= 390, wide);
  await shot(page, name + "-phone");
  await page.close();

  page = await open(file, { noScript: true });
  check("without scripts the pictures are shown", await page.$$eval("figure .static svg", all => all.every(e => e.getBoundingClientRect().height > 50)));
  await shot(page, name + "-plain");
  await page.close();
}
await browser.close();
for (const fault of faults) console.log("FAULT " + fault);
console.log(faults.length ? faults.length + " faults" : "all pages do what they say");
process.exit(faults.length ? 1 : 0);
