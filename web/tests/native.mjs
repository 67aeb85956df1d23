// What the native program says, to hold the page against.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const here = dirname(fileURLToPath(import.meta.url));
export const root = dirname(dirname(here));
/** The native program: PENSTOCK, or a debug build. */
export const penstock = process.env.PENSTOCK ?? join(root, "target/debug/penstock");

/** Left out, each with its reason. */
export const LEFT_OUT = {
  "isp-10k.toml": "10,000 customers take minutes in a debug build; the other examples have every part of it",
  "new/isp.toml": "as isp-10k.toml",
};

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** The digest of the native record of an example; `undefined` where the program refuses it. */
export function record(name) {
  const folder = mkdtempSync(join(tmpdir(), "penstock-web-"));
  try {
    const ran = spawnSync(penstock, ["run", name, "--threads", "1", "--out", join(folder, "run")], { cwd: join(root, "examples"), encoding: "utf8" });
    if (ran.status !== 0 && ran.status !== 1) throw new Error(`${name}: ${ran.stderr}`);
    return sha256(readFileSync(join(folder, "run/record.json")));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What a verb prints, whatever its status. */
export function said(args, options = {}) {
  const ran = spawnSync(penstock, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
  if (ran.error) throw ran.error;
  return ran.stdout;
}

export const version = () => execFileSync(penstock, ["--version"], { encoding: "utf8" }).trim();
