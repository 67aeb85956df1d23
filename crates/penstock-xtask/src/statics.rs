//! Static programs: with musl, for several processors, linked by the compiler's own linker, so that no compiler of C is needed; tried in an empty root.
//!
//! The container image is such a program and nothing else (`Containerfile`): what it says is tried here, without a program that builds images.

use crate::package::said;
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What programs are built for.
const TARGETS: [(&str, &str); 2] =
    [("x86_64", "x86_64-unknown-linux-musl"), ("aarch64", "aarch64-unknown-linux-musl")];
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// An experiment that needs no file.
const EXPERIMENT: &str = "example:home-line";

/// Builds the programs, or that of one processor, into a folder, and tries them; what was made, and what could not be tried.
///
/// # Errors
/// A step fails, a program is not static, or two of them make different results.
pub fn programs(profile: &str, only: Option<&str>, out: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut made, mut untried) = (Vec::new(), Vec::new());
    let mut first: Option<(&str, Vec<u8>)> = None;
    let known = |arch: &str| TARGETS.iter().any(|(known, _)| *known == arch);
    if let Some(other) = only.filter(|arch| !known(arch)) {
        bail!("no static program is made for {other}: there are x86_64 and aarch64");
    }
    for (arch, target) in TARGETS.into_iter().filter(|(arch, _)| only.is_none_or(|only| only == *arch)) {
        let built = built(target, profile)?;
        let bytes = fs::read(&built).with_context(|| built.display().to_string())?;
        let asks = interpreter(&bytes).with_context(|| format!("{}: not a program", built.display()))?;
        ensure!(
            asks.is_none(),
            "{} is not static: it asks for {}",
            built.display(),
            asks.unwrap_or_default()
        );
        let path = out.join(format!("penstock-{VERSION}-{arch}-linux-musl"));
        fs::copy(&built, &path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        let name = path.file_name().context("it has a name")?.to_string_lossy().into_owned();
        match emulator(arch) {
            Ok(emulator) => {
                let series = tried(&path, emulator.as_deref(), &out.join("root"))?;
                match &first {
                    Some((other, expected)) => {
                        ensure!(
                            series == *expected,
                            "{arch} and {other} make different results of {EXPERIMENT}"
                        );
                        println!("{name}: the same bytes as on {other}");
                    }
                    None => first = Some((arch, series)),
                }
            }
            Err(why) => untried.push(format!("{name}: not tried: {why}")),
        }
        made.push(path);
    }
    Ok((made, untried))
}

/// Builds the program for a target, without tables for debuggers.
fn built(target: &str, profile: &str) -> Result<PathBuf> {
    let sysroot = said(Command::new("rustc").args(["--print", "sysroot"]))?;
    if !Path::new(&sysroot).join("lib/rustlib").join(target).is_dir() {
        let added = Command::new("rustup").args(["target", "add", target]).status();
        ensure!(
            added.is_ok_and(|s| s.success()),
            "the compiler has no library for it: rustup target add {target}"
        );
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--profile", profile, "--package", "penstock-cli", "--target", target]);
    cargo.arg("--config").arg(format!("profile.{profile}.strip=\"debuginfo\""));
    let variable = target.to_uppercase().replace('-', "_");
    cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), "rust-lld");
    cargo.env(
        format!("CARGO_TARGET_{variable}_RUSTFLAGS"),
        "-Clink-self-contained=yes -Ctarget-feature=+crt-static",
    );
    // It would take the place of the flags above.
    cargo.env_remove("RUSTFLAGS");
    ensure!(cargo.status().context("cargo")?.success(), "cargo build --target {target} failed");
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(Path::new("target").join(target).join(folder).join("penstock"))
}

/// What a program of another processor is run by: nothing on its own.
fn emulator(arch: &str) -> Result<Option<PathBuf>, String> {
    if arch == std::env::consts::ARCH {
        return Ok(None);
    }
    let name = format!("qemu-{arch}-static");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|path| path.is_file());
    found.map(Some).ok_or_else(|| format!("no {name} is there: apt-get install qemu-user-static"))
}

/// Makes an empty root; but for bytes of chance at `/dev/urandom`, which every container has, and by which the program names what it is writing.
fn empty(folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder.join("dev"))?;
    let mut bytes = [0; 4096];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    fs::write(folder.join("dev/urandom"), bytes)?;
    Ok(())
}

/// An empty root with the program at `/penstock`, as an image has it, and what runs it.
struct Root {
    folder: PathBuf,
    emulator: bool,
}

impl Root {
    fn new(program: &Path, emulator: Option<&Path>, folder: &Path) -> Result<Root> {
        empty(folder)?;
        fs::create_dir_all(folder.join("lab"))?;
        fs::copy(program, folder.join("penstock"))?;
        if let Some(emulator) = emulator {
            fs::copy(emulator, folder.join("emulator"))?;
        }
        Ok(Root { folder: folder.to_owned(), emulator: emulator.is_some() })
    }

    /// What the program says in it, from the folder `/lab`.
    fn said(&self, words: &[&str]) -> Result<String> {
        let mut inside = Command::new("unshare");
        inside.args(["--user", "--map-root-user", "--root"]).arg(&self.folder).args(["--wd", "/lab"]);
        inside.args(self.emulator.then_some("/emulator")).arg("/penstock").args(words).env_clear();
        said(&mut inside)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Tries a program in an empty root: its version, a finding, and a run, whose series are given back.
fn tried(program: &Path, emulator: Option<&Path>, folder: &Path) -> Result<Vec<u8>> {
    let root = Root::new(program, emulator, folder)?;
    let version = root.said(&["--version"])?;
    ensure!(version == format!("penstock {VERSION}"), "{} says {version}", program.display());
    fs::write(root.folder.join("lab/shaper.sh"), "tc qdisc add dev eth0 root fq_codel\n")?;
    root.said(&["check", "shaper.sh"])?;
    root.said(&["run", EXPERIMENT, "--out", "out"])?;
    let series = fs::read(root.folder.join("lab/out/series.parquet"))?;
    let by = if emulator.is_some() { ", by an emulator" } else { "" };
    println!("{}: checked a script and ran {EXPERIMENT} in an empty root{by}", program.display());
    Ok(series)
}

/// Writes the image's recipe beside the programs and tries its steps: each `COPY` into an empty root, then the `ENTRYPOINT` with the words of `CMD`.
///
/// # Errors
/// There is no static program, the recipe has a step that is not known, or a step fails.
pub fn container(out: &Path) -> Result<PathBuf> {
    let path = out.join("Containerfile");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/Containerfile"), &path)?;
    let steps = steps(&fs::read_to_string(&path)?, VERSION, std::env::consts::ARCH)?;
    let folder = out.join("root");
    empty(&folder)?;
    let mut workdir = "/".to_owned();
    let (mut entry, mut words) = (Vec::new(), Vec::new());
    for step in &steps {
        match step {
            Step::Copy { from, to } => {
                let (from, to) = (out.join(from), folder.join(to.trim_start_matches('/')));
                fs::create_dir_all(to.parent().context("it lies in a folder")?)?;
                fs::copy(&from, to).with_context(|| {
                    format!("{} is missing: cargo xtask dist static container", from.display())
                })?;
            }
            Step::Workdir(at) => {
                fs::create_dir_all(folder.join(at.trim_start_matches('/')))?;
                workdir.clone_from(at);
            }
            Step::Entrypoint(all) => entry.clone_from(all),
            Step::Cmd(all) => words.clone_from(all),
        }
    }
    let run = |words: &[String]| {
        let mut inside = Command::new("unshare");
        inside.args(["--user", "--map-root-user", "--root"]).arg(&folder).args(["--wd", &workdir]);
        said(inside.args(&entry).args(words).env_clear())
    };
    let help = run(&words)?;
    ensure!(help.contains("Usage:"), "the image says {help}");
    run(&["run".to_owned(), EXPERIMENT.to_owned()])?;
    let report = folder.join(workdir.trim_start_matches('/')).join("runs/home-line/report.html");
    ensure!(report.is_file(), "the image wrote no report");
    fs::remove_dir_all(&folder)?;
    println!("{}: its steps were done in an empty root, {EXPERIMENT} was run there", path.display());
    Ok(path)
}

/// A step of an image's recipe.
#[derive(PartialEq, Eq, Debug)]
enum Step {
    Copy { from: String, to: String },
    Workdir(String),
    Entrypoint(Vec<String>),
    Cmd(Vec<String>),
}

/// The steps of a recipe that begins with nothing.
fn steps(text: &str, version: &str, arch: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut from_nothing = false;
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (word, rest) = line.split_once(' ').with_context(|| line.to_owned())?;
        let rest = rest.replace("${VERSION}", version).replace("${ARCH}", arch);
        ensure!(!rest.contains("${"), "{line}: it needs what is not known here");
        let list = || serde_json::from_str::<Vec<String>>(&rest).with_context(|| line.to_owned());
        match word {
            "FROM" if rest == "scratch" => from_nothing = true,
            "ARG" | "LABEL" => {}
            "COPY" => {
                let (from, to) = rest.split_once(' ').with_context(|| line.to_owned())?;
                steps.push(Step::Copy { from: from.to_owned(), to: to.to_owned() });
            }
            "WORKDIR" => steps.push(Step::Workdir(rest)),
            "ENTRYPOINT" => steps.push(Step::Entrypoint(list()?)),
            "CMD" => steps.push(Step::Cmd(list()?)),
            _ => bail!("{line}: a step that cannot be tried here"),
        }
    }
    ensure!(from_nothing, "the image does not begin with nothing: FROM scratch");
    Ok(steps)
}

/// The program that a program asks to be started by (its dynamic linker); `Some(None)` for a static one, `None` where it is no ELF file of 64 bits, least byte first.
fn interpreter(elf: &[u8]) -> Option<Option<String>> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = elf.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    };
    let place = |at: usize, len: usize| number(at, len).and_then(|n| usize::try_from(n).ok());
    if elf.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    // ELF-64: e_phoff, e_phentsize, e_phnum; of each header p_type, p_offset, p_filesz.
    let (headers, size, count) = (place(32, 8)?, place(54, 2)?, place(56, 2)?);
    for n in 0..count {
        let at = headers.checked_add(n * size)?;
        if number(at, 4)? == PT_INTERP {
            let (from, len) = (place(at + 8, 8)?, place(at + 32, 8)?);
            let name = elf.get(from..from.checked_add(len)?)?;
            return Some(Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()));
        }
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_found() {
        // This very program is dynamic where the tests run on glibc.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let asks = interpreter(&own).unwrap();
        assert_eq!(asks.is_some(), !cfg!(target_feature = "crt-static"), "{asks:?}");
        assert!(asks.is_none_or(|name| name.contains("ld-")));
        // A program without these headers needs no loader; a file that ends too early is refused.
        let mut elf = b"\x7fELF\x02\x01".to_vec();
        elf.resize(64, 0);
        assert_eq!(interpreter(&elf), Some(None));
        assert_eq!((interpreter(&elf[..40]), interpreter(b"#!/bin/sh")), (None, None));
        elf[56] = 1;
        (elf[32], elf[54]) = (64, 56);
        assert_eq!(interpreter(&elf), None);
    }

    #[test]
    fn another_processor_is_refused_by_name() {
        let refused = programs("release", Some("riscv64"), Path::new("nowhere")).unwrap_err();
        assert!(refused.to_string().starts_with("no static program is made for riscv64"), "{refused}");
        assert_eq!(emulator(std::env::consts::ARCH), Ok(None));
        assert!(emulator("pdp11").unwrap_err().starts_with("no qemu-pdp11-static is there"));
    }

    #[test]
    fn the_recipe_has_steps_that_can_be_tried() {
        let text = include_str!("Containerfile");
        let all = steps(text, "1.2.3", "x86_64").unwrap();
        let from = all.iter().find_map(|s| match s {
            Step::Copy { from, .. } => Some(from.as_str()),
            _ => None,
        });
        assert_eq!(from, Some("penstock-1.2.3-x86_64-linux-musl"));
        assert!(all.contains(&Step::Entrypoint(vec!["/penstock".to_owned()])));
        for wrong in [
            "FROM debian",
            "FROM scratch\nRUN true",
            "FROM scratch\nCOPY ${OTHER} /x",
            "COPY a /b",
            "FROM scratch\nCMD x",
        ] {
            assert!(steps(wrong, "1", "x86_64").is_err(), "{wrong}");
        }
    }
}
