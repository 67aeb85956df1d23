// Pictures of the page and of the pages of results, compared with those kept in tests/goldens, in Chromium. `node tests/pictures.mjs --bless` keeps new
// ones. The fonts are pinned: both come with the tests and stand in place of the machine's, so that letters have the same places everywhere; how their edges
// are drawn may differ, which the comparison leaves out (pixelmatch, anti-aliasing). What a run took is hidden. PENSTOCK names the native program.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import pixelmatch from "pixelmatch";
import { chromium } from "playwright-core";
import { PNG } from "pngjs";
import { here, penstock, root } from "./native.mjs";

const bless = process.argv.includes("--bless");
const goldens = join(here, "goldens");
const seen = join(here, "pictures");
for (const folder of [goldens, seen]) mkdirSync(folder, { recursive: true });
/** Of all pixels so many may differ. A panel, or a colour of a curve, is more. */
const MOST = 0.001;
/** All pictures together, bytes. */
const ALL = 1_500_000;

const font = (family, file, weight) => {
  const bytes = readFileSync(join(here, "../node_modules/@fontsource", file)).toString("base64");
  return `@font-face{font-family:${family};font-weight:${weight};src:url(data:font/woff2;base64,${bytes})}`;
};
const FONTS = [
  font("Pinned", "inter/files/inter-latin-400-normal.woff2", "400"),
  font("Pinned", "inter/files/inter-latin-600-normal.woff2", "500 900"),
  font("PinnedMono", "jetbrains-mono/files/jetbrains-mono-latin-400-normal.woff2", "100 900"),
  "*{font-family:Pinned!important;caret-color:transparent!important;animation:none!important;transition:none!important}",
  "pre,code,textarea,#packet,.terminal,.terminal *,.cm-editor *,.cm-editor{font-family:PinnedMono!important}",
  ".cm-cursorLayer{visibility:hidden!important}",
].join("\n");

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm", ".svg": "image/svg+xml" };
const server = createServer((request, response) => {
  const path = new URL(request.url, "http://x").pathname;
  const file = join(here, "../dist", path.endsWith("/") ? `${path}index.html` : path);
  if (path.includes("..") || !existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  response.end(readFileSync(file));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--force-color-profile=srgb", "--font-render-hinting=none", "--hide-scrollbars", "--disable-lcd-text"],
});
const scratch = mkdtempSync(join(tmpdir(), "penstock-pictures-"));

/** A page of a size and a scheme, in the pinned fonts. */
async function open(url, { width = 1280, height = 900, dark = false, ready }) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", serviceWorkers: "block", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(url);
  await page.addStyleTag({ content: FONTS });
  if (ready) await ready(page);
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(300);
  return page;
}

/** How much of a picture differs from another: a share of the pixels, 1 where the sizes do. */
function differs(one, other, out) {
  const [a, b] = [PNG.sync.read(one), PNG.sync.read(other)];
  if (a.width !== b.width || a.height !== b.height) return 1;
  const diff = new PNG({ width: a.width, height: a.height });
  const count = pixelmatch(a.data, b.data, diff.data, a.width, a.height, { threshold: 0.15, includeAA: false });
  if (out && count > 0) writeFileSync(out, PNG.sync.write(diff));
  return count / (a.width * a.height);
}

/** As few bytes as it takes: the last bits of each colour are the same, which the comparison does not see. */
const packed = (bytes) => {
  const picture = PNG.sync.read(bytes);
  const near = (value) => (value >= 252 ? 255 : (value + 4) & 0xf8);
  for (let n = 0; n < picture.data.length; n += 1) if (n % 4 !== 3) picture.data[n] = near(picture.data[n]);
  return PNG.sync.write(picture, { colorType: 2, deflateLevel: 9, deflateStrategy: 0, filterType: 0 });
};
const axe = readFileSync(join(here, "../node_modules/axe-core/axe.min.js"), "utf8");
const faults = [];
let count = 0;
async function compare(page, name, seeds = []) {
  // Neither the time that something took nor a title in letters that the pinned fonts have not.
  const hide = [page.locator("#lab-status"), page.locator("footer"), page.locator(".source")];
  const shoot = () => page.screenshot({ mask: hide, maskColor: "#888888", caret: "hide" });
  const now = await shoot();
  writeFileSync(join(seen, `golden-${name}.png`), now);
  const kept = join(goldens, `${name}.png`);
  if (bless) writeFileSync(kept, packed(now));
  count += 1;
  if (!existsSync(kept)) return faults.push(`${name}: there is no picture; node tests/pictures.mjs --bless keeps one`);
  const golden = readFileSync(kept);
  const share = differs(now, golden, join(seen, `differs-${name}.png`));
  console.log(`${share > MOST ? "FAILED" : "ok"} ${name} (${(share * 100).toFixed(3)} % differ)`);
  if (share > MOST) faults.push(`${name}: ${(share * 100).toFixed(2)} % of the picture differs; see tests/pictures/differs-${name}.png`);
  // A change that is made on purpose must be seen.
  for (const [what, css] of seeds) {
    const style = await page.addStyleTag({ content: css });
    const wrong = differs(await shoot(), golden);
    console.log(`   ${what}: ${(wrong * 100).toFixed(2)} % differ`);
    if (wrong <= MOST) faults.push(`${name}: ${what} is not seen`);
    await style.evaluate((node) => node.remove());
  }
}

const script = async (page) => {
  await page.locator("#findings li").first().waitFor();
  await page.locator("#partition tr").first().waitFor();
};
const lab = async (page) => {
  await page.locator("#lab-status", { hasText: "machines" }).waitFor();
  await page.click("#lab-run");
  await page.locator(".play .chart").first().waitFor();
  const slider = page.locator(".play input[type=range]");
  await slider.fill("12");
  await page.locator(".play").evaluate((node) => scrollTo(0, node.getBoundingClientRect().top + scrollY - 60));
};
const learn = async (page) => {
  await page.locator("#lesson h1").waitFor();
};
const COLOUR = ["a colour changed", ":root{--c0:#d00!important}"];
const phone = { width: 390, height: 844 };

/** Runs the native program in a folder. */
const run = (...args) => {
  const ran = spawnSync(penstock, args, { cwd: scratch, encoding: "utf8" });
  assert.ok(ran.status === 0 || ran.status === 1, `${args.join(" ")}: ${ran.stderr}`);
  return ran.stdout;
};

try {
  for (const [name, view, ready, how, seeds] of [
    ["script-light", "script", script, {}, [["a panel hidden", "#findings{display:none!important}"], COLOUR]],
    ["script-dark", "script", script, { dark: true }],
    ["script-phone", "script", script, phone],
    ["lab-light", "lab", lab, {}, [["a panel hidden", ".charts{display:none!important}"], COLOUR]],
    ["lab-phone-dark", "lab", lab, { ...phone, dark: true }],
    ["learn-light", "learn", learn, {}, [["a panel hidden", "#lessons{visibility:hidden!important}"]]],
    ["learn-phone", "learn", learn, phone],
  ]) {
    const page = await open(`${address}#${view}`, { ...how, ready });
    await compare(page, name, seeds);
    if (name === "script-light") {
      await page.emulateMedia({ media: "print" });
      await compare(page, "script-print");
    }
    await page.context().close();
  }
  const example = (name) => join(root, "examples", `${name}.toml`);
  run("run", example("home-line"), "--out", "shaped");
  run("run", example("home-line-unshaped"), "--out", "unshaped");
  run("compare", "unshaped", "shaped", "--html", "compare.html");
  run("sweep", example("home-line-unshaped"), "--set", "link.3.delay=1ms,20ms,40ms", "--seeds", "2", "--out", "sweep");
  run("study", "pfifo-fast-tos", "--seeds", "2", "--html", "study.html");
  const pages = { report: "shaped/report.html", compare: "compare.html", sweep: "sweep/report.html", study: "study.html" };
  for (const [name, file] of Object.entries(pages)) {
    const url = pathToFileURL(join(scratch, file)).href;
    for (const [suffix, how] of [["light", {}], ["phone-dark", { width: 400, height: 844, dark: true }]]) {
      const page = await open(url, how);
      await compare(page, `${name}-${suffix}`, suffix === "light" ? [["a panel hidden", "h2 ~ *, h3, table{visibility:hidden!important}"], ["a colour changed", ":root{--soft:#d00!important}"]] : []);
      // What axe finds serious on the whole page, with everything that can be opened open.
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      await page.evaluate(axe);
      const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`));
      for (const one of found.filter((v) => /^(serious|critical)/.test(v))) faults.push(`${name}-${suffix}: ${one}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) faults.push(`${name}-${suffix}: ${wide} pixels too wide`);
      await page.context().close();
    }
  }
  const size = readdirSync(goldens).reduce((sum, name) => sum + statSync(join(goldens, name)).size, 0);
  console.log(`${count} pictures, ${size.toLocaleString("en")} bytes kept`);
  assert.ok(size <= ALL, `the pictures have ${size} bytes, of at most ${ALL}`);
  assert.deepEqual(faults, []);
} finally {
  await browser.close();
  server.close();
  rmSync(scratch, { recursive: true, force: true });
}
