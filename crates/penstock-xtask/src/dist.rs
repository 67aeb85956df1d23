//! `xtask dist`: what is shipped, in `target/dist-files`: the program, laid out by what it does most, a Debian package, a wheel, static programs,
//! an image's recipe, an inventory (SBOM) and checksums.
//!
//! Profile-guided optimisation in three steps: a program that counts how often each part of it runs, runs of it, and the program
//! itself built by these counts (`-Cprofile-generate`, `-Cprofile-use` of rustc). The counts lie in `target/pgo`.

use crate::{package, python, statics};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `xtask dist` takes.
#[derive(clap::Args)]
pub struct Args {
    /// Build without profile-guided optimisation, as `cargo build --profile dist` does
    #[arg(long)]
    plain: bool,
    /// Take this program instead of building one, to try the packaging
    #[arg(long, value_name = "FILE", conflicts_with = "plain")]
    program: Option<PathBuf>,
    /// The profile that static programs are built with; `release` is quicker, to try the packaging
    #[arg(long, value_name = "NAME", default_value = "dist")]
    profile: String,
    /// Build the static program of this processor alone: x86_64 or aarch64
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// What to make [default: all but crates]
    #[arg(value_enum)]
    parts: Vec<Part>,
}

/// A part of what is shipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Part {
    /// The program
    Program,
    /// A Debian package of it: manual pages, completions, tools by their own names in /usr/lib/penstock
    Deb,
    /// A wheel with the Python module and the program
    Wheel,
    /// Programs that need no library (musl), for x86_64 and aarch64, each tried in an empty root
    Static,
    /// The recipe of a container image, whose steps are tried in an empty root
    Container,
    /// By name alone: the crates, in the order in which they can be published; each is built from what would be published
    Crates,
    /// What is in the program, as CycloneDX
    Sbom,
    /// SHA256SUMS of all that is there
    Sums,
}

/// Where all of it comes.
const OUT: &str = "target/dist-files";

/// What the program is laid out for: experiments of the examples and of `bench count`. Much of each is what most people's runs do most.
const TRAINING: &[&str] = &[
    "examples/home-line.toml",
    "examples/home-line-cake.toml",
    "examples/diffserv.toml",
    "examples/three-users.toml",
    "examples/wan-netem.toml",
    "crates/penstock-xtask/src/count/ten.toml",
    "crates/penstock-xtask/src/count/hosts.toml",
    "crates/penstock-xtask/src/count/chain.toml",
    "crates/penstock-xtask/src/count/lines.toml",
    "crates/penstock-xtask/src/count/firewall.toml",
];

/// Makes the parts and says where they are.
///
/// # Errors
/// A tool is missing, a step failed, or what was packed does not work where it was installed.
pub fn run(args: &Args) -> Result<()> {
    let all = [
        Part::Program,
        Part::Deb,
        Part::Wheel,
        Part::Static,
        Part::Container,
        Part::Crates,
        Part::Sbom,
        Part::Sums,
    ];
    // Crates are built once more, and the index of the registry is asked.
    let by_default = |part: Part| args.parts.is_empty() && part != Part::Crates;
    let wanted = |part: Part| by_default(part) || args.parts.contains(&part);
    let out = Path::new(OUT);
    fs::create_dir_all(out)?;
    let program = match &args.program {
        Some(program) => Some(program.clone()),
        None if [Part::Program, Part::Deb, Part::Wheel].into_iter().any(wanted) => Some(built(args)?),
        None => None,
    };
    let program = || program.clone().context("no program was built");
    for part in all.into_iter().filter(|part| wanted(*part)) {
        let made = match part {
            Part::Program => {
                let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
                let path = out.join(format!("penstock-{}-{arch}-{os}", env!("CARGO_PKG_VERSION")));
                fs::copy(program()?, &path)?;
                path
            }
            Part::Deb => package::deb(&program()?, out)?,
            Part::Wheel => {
                python::kit().map_err(|why| anyhow!("the wheel: {why}"))?.shipped(&program()?, out)?
            }
            Part::Static => {
                let (made, untried) = statics::programs(&args.profile, args.arch.as_deref(), out)?;
                for path in &made {
                    told(path)?;
                }
                untried.iter().for_each(|what| println!("{what}"));
                continue;
            }
            Part::Container => statics::container(out)?,
            Part::Crates => {
                package::crates(out)?.iter().try_for_each(|path| told(path))?;
                continue;
            }
            Part::Sbom => package::sbom(out)?,
            Part::Sums => package::sums(out)?,
        };
        told(&made)?;
    }
    Ok(())
}

/// Builds the program and says where it is.
fn built(args: &Args) -> Result<PathBuf> {
    if args.plain {
        build(Path::new("target"), None, &[])?;
        return Ok(PathBuf::from("target/dist/penstock"));
    }
    let merge = llvm_profdata()?;
    let pgo = std::env::current_dir()?.join("target/pgo");
    let counts = pgo.join("counts");
    if counts.exists() {
        fs::remove_dir_all(&counts)?;
    }
    fs::create_dir_all(&counts)?;
    // Functions are counted before crates are joined: that the counting program does without.
    let generate = format!("-Cprofile-generate={}", counts.display());
    build(
        &pgo,
        Some(&generate),
        &["--config", "profile.dist.lto=\"off\"", "--config", "profile.dist.debug=false"],
    )?;
    for (n, file) in TRAINING.iter().enumerate() {
        train(&pgo.join("dist/penstock"), file, &counts, n)?;
    }
    let raw: Vec<PathBuf> = fs::read_dir(&counts)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "profraw"))
        .collect();
    ensure!(
        raw.len() >= TRAINING.len(),
        "{} of {} runs left no counts",
        TRAINING.len() - raw.len(),
        TRAINING.len()
    );
    let merged = pgo.join("penstock.profdata");
    let done = Command::new(merge).arg("merge").arg("-o").arg(&merged).args(&raw).status()?;
    ensure!(done.success(), "llvm-profdata could not merge the counts");
    build(Path::new("target/shipped"), Some(&format!("-Cprofile-use={}", merged.display())), &[])?;
    Ok(PathBuf::from("target/shipped/dist/penstock"))
}

fn told(path: &Path) -> Result<()> {
    let bytes = fs::metadata(path).with_context(|| path.display().to_string())?.len();
    println!("{} ({:.1} MB)", path.display(), bytes as f64 / 1e6);
    Ok(())
}

/// Builds the program with the profile `dist` in a folder of its own.
fn build(target: &Path, flags: Option<&str>, more: &[&str]) -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--profile", "dist", "--package", "penstock-cli", "--target-dir"])
        .arg(target)
        .args(more);
    if let Some(flags) = flags {
        cargo.env("RUSTFLAGS", flags);
    }
    ensure!(cargo.status().context("cargo")?.success(), "cargo build failed");
    Ok(())
}

/// Runs an experiment with the program that counts. It may write beside its results alone, so its counts lie there.
fn train(program: &Path, file: &str, counts: &Path, n: usize) -> Result<()> {
    let mut run = Command::new(program);
    run.args(["run", file, "--json", "--out"]).arg(counts.join(n.to_string()));
    run.env("LLVM_PROFILE_FILE", counts.join(format!("{n}.profraw")));
    let output = run.output().with_context(|| program.display().to_string())?;
    // 1: an expectation was not met, which is all the same here.
    match output.status.code() {
        Some(0 | 1) => Ok(()),
        _ => {
            bail!("{file}: {}", String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it failed"))
        }
    }
}

/// The tool that comes with this compiler and reads its counts.
fn llvm_profdata() -> Result<PathBuf> {
    let asked = |what: &[&str]| -> Result<String> {
        let output = Command::new("rustc").args(what).output().context("rustc")?;
        ensure!(output.status.success(), "rustc {} failed", what.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    };
    let host = asked(&["-vV"])?;
    let host = host.lines().find_map(|l| l.strip_prefix("host: ")).context("rustc tells no host")?;
    let sysroot = asked(&["--print", "sysroot"])?;
    let tool = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    if !tool.is_file() {
        // Where rustup is, it is one command.
        let added = Command::new("rustup").args(["component", "add", "llvm-tools"]).status();
        ensure!(
            added.is_ok_and(|s| s.success()) && tool.is_file(),
            "{} is missing: rustup component add llvm-tools, or cargo xtask dist --plain",
            tool.display()
        );
    }
    Ok(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_trained_by_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for file in TRAINING {
            let text = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert!(text.contains("[host."), "{file} is an experiment");
        }
    }
}
