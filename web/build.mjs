// Builds dist/: the page and the program, a folder that any static host serves. `cargo xtask web` has compiled core/ before.
//   node build.mjs            with the program
//   node build.mjs --page     the page alone, beside a program that is there
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { marked } from "marked";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const dist = join(here, "dist");
const wasm = join(dist, "penstock.wasm");
const compiled = join(here, "core/target/wasm32-unknown-unknown/release/penstock_web.wasm");

/** Most bytes that are loaded before the first answer, compressed. */
const MOST = 6e6;

if (!process.argv.includes("--page")) rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
if (!process.argv.includes("--page")) {
  const features = ["--enable-bulk-memory", "--enable-sign-ext", "--enable-mutable-globals", "--enable-nontrapping-float-to-int", "--enable-reference-types", "--enable-multivalue", "--enable-bulk-memory-opt"];
  execFileSync(process.execPath, [join(here, "node_modules/binaryen/bin/wasm-opt"), "-O1", "--strip-debug", "--strip-producers", ...features, compiled, "-o", wasm], { stdio: "inherit" });
}
if (!existsSync(wasm)) throw new Error("dist/penstock.wasm is not there: cargo xtask web");

// The examples, each with the files beside it that it may name.
const folder = join(root, "examples");
// An object of eBPF is carried as text with each of its bytes as one character.
const read = (path) => readFileSync(join(folder, path), path.endsWith(".o") ? "latin1" : "utf8");
const examples = [];
for (const part of ["", "systems/"]) {
  const names = readdirSync(join(folder, part)).sort();
  const beside = names.filter((n) => /\.(sh|cfg|toml|trace|o)$/.test(n));
  for (const name of names.filter((n) => n.endsWith(".toml"))) {
    const text = read(part + name);
    const named = (path, seen) => {
      for (const other of beside) {
        if (other !== name && !seen.has(other) && read(part + path).includes(other)) {
          seen.add(other);
          named(other, seen);
        }
      }
      return seen;
    };
    const files = [...named(name, new Set())].map((other) => [part + other, read(part + other)]);
    const title = /^title\s*=\s*"(.*)"/m.exec(text)?.[1] ?? name;
    examples.push({ name: part + name, title: part ? `${title} (${part.slice(0, -1)})` : title, text, files });
  }
}

// The lessons: our own texts, as pages.
const links = (html) =>
  html.replaceAll(/href="(?!https?:|#)([^"]*)"/g, (_, path) => `href="https://github.com/penstock/penstock/blob/main/docs/${path}"`);
const lesson = (id, text) => {
  const title = /^# (.*)$/m.exec(text)[1];
  return { id, title, html: links(marked.parse(text)) };
};
const lessons = readdirSync(join(here, "lessons")).sort().map((name) => lesson(name.replace(/^\d+-|\.md$/g, ""), readFileSync(join(here, "lessons", name), "utf8")));
lessons.push(lesson("tutorial", readFileSync(join(root, "docs/tutorial.md"), "utf8")));

const version = /^version = "(.*)"/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
const script = readFileSync(join(here, "src/shaper.sh"), "utf8");
writeFileSync(join(dist, "material.json"), JSON.stringify({ version, script, examples, lessons }));

const common = { bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning", metafile: true };
const made = await build({ ...common, entryPoints: [join(here, "src/main.ts")], format: "esm", outfile: join(dist, "main.js") });
await build({ ...common, entryPoints: [join(here, "src/worker.ts")], format: "iife", outfile: join(dist, "worker.js") });
for (const name of ["index.html", "style.css", "icon.svg"]) cpSync(join(here, "src", name), join(dist, name));

// What of other people's is in it, with their words.
const packages = new Set(Object.keys(made.metafile.inputs).flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));
const said = [...packages].sort().map((name) => {
  const place = join(here, "node_modules", name);
  const about = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  const file = readdirSync(place).find((f) => /^licen[sc]e/i.test(f));
  return `${name} ${about.version}, ${about.license}\n\n${file ? readFileSync(join(place, file), "utf8").trim() : ""}\n`;
});
const own = "Penstock is MIT OR Apache-2.0. The program (penstock.wasm) is made of the crates that web/core/Cargo.lock names: licences that\ndeny.toml allows. In the page:\n";
writeFileSync(join(dist, "licences.txt"), [own, ...said].join("\n----\n\n"));

// The worker that keeps all of it, under a name that changes with what is kept.
const files = readdirSync(dist).filter((name) => name !== "sw.js").sort();
const hash = createHash("sha256");
for (const name of files) hash.update(name).update(readFileSync(join(dist, name)));
const define = { FILES: JSON.stringify(["./", ...files]), NAME: JSON.stringify(`penstock-${hash.digest("hex").slice(0, 16)}`) };
await build({ ...common, entryPoints: [join(here, "src/sw.ts")], format: "iife", outfile: join(dist, "sw.js"), define });

// The tests in node use the same half that the worker does.
await build({ ...common, minify: false, entryPoints: [join(here, "src/core.ts")], format: "esm", outfile: join(here, "tests/built/core.mjs") });
await build({ ...common, minify: false, entryPoints: [join(here, "src/script.ts")], format: "esm", outfile: join(here, "tests/built/script.mjs"), platform: "neutral", mainFields: ["module", "main"] });

let sum = 0;
for (const name of readdirSync(dist).sort()) {
  const size = gzipSync(readFileSync(join(dist, name)), { level: 9 }).length;
  sum += size;
  console.log(`${name.padEnd(16)} ${statSync(join(dist, name)).size.toLocaleString("en")} bytes, ${size.toLocaleString("en")} compressed`);
}
console.log(`in all ${sum.toLocaleString("en")} bytes compressed, of at most ${MOST.toLocaleString("en")}`);
if (sum > MOST) { console.error("the page is larger than it may be"); process.exitCode = 1; }
