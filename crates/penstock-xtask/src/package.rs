//! Packages of a built program: a Debian package, an inventory of what is in it (SBOM, CycloneDX), checksums. Each is tried as somebody would use it.

use anyhow::{Context as _, Result, bail, ensure};
use penstock_host::Program;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of everything.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Revision of the package within a version.
const REVISION: u32 = 1;

/// Builds `penstock_VERSION_ARCH.deb` of a program into a folder, and tries it.
///
/// # Errors
/// A tool is missing, a step failed, or what was installed does not work.
pub fn deb(program: &Path, out: &Path) -> Result<PathBuf> {
    let arch = said(Command::new("dpkg").arg("--print-architecture")).context("dpkg is needed")?;
    let work = out.join("deb");
    let _ = fs::remove_dir_all(&work);
    let root = work.join("root");
    let mkdir = |path: &str| -> Result<PathBuf> {
        let folder = root.join(path);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let bytes = fs::read(program).with_context(|| program.display().to_string())?;
    let bin = mkdir("usr/bin")?.join("penstock");
    fs::copy(program, &bin)?;
    fs::set_permissions(&bin, fs::Permissions::from_mode(0o755))?;
    // Line tables are for those who build.
    run(Command::new("strip").arg("--strip-debug").arg(&bin)).context("strip, of binutils")?;
    let man = mkdir("usr/share/man/man1")?;
    run(Command::new(program).args(["man", "--out"]).arg(&man))?;
    let pages: Vec<PathBuf> = fs::read_dir(&man)?.filter_map(|e| e.ok().map(|e| e.path())).collect();
    run(Command::new("gzip").args(["-9n"]).args(&pages))?;
    for (shell, folder, name) in [
        ("bash", "usr/share/bash-completion/completions", "penstock"),
        ("zsh", "usr/share/zsh/vendor-completions", "_penstock"),
        ("fish", "usr/share/fish/vendor_completions.d", "penstock.fish"),
    ] {
        let text = said(Command::new(program).args(["completions", shell]))?;
        fs::write(mkdir(folder)?.join(name), text + "\n")?;
    }
    // PATH=/usr/lib/penstock:$PATH makes scripts meet the virtual machine.
    let tools = mkdir("usr/lib/penstock")?;
    for tool in Program::tools().map(|tool| tool.name).chain(["ping"]) {
        symlink("../../bin/penstock", tools.join(tool))?;
    }
    let doc = mkdir("usr/share/doc/penstock")?;
    fs::write(doc.join("copyright"), copyright())?;
    fs::copy(repository().join("CHANGELOG.md"), doc.join("changelog"))?;
    run(Command::new("gzip").args(["-9n"]).arg(doc.join("changelog")))?;
    let size: u64 = said(Command::new("du").args(["-sk", "--apparent-size"]).arg(&root))?
        .split_whitespace()
        .next()
        .and_then(|kb| kb.parse().ok())
        .context("du tells no size")?;
    fs::create_dir_all(root.join("DEBIAN"))?;
    let control = format!(
        "Package: penstock\nVersion: {VERSION}-{REVISION}\nArchitecture: {arch}\nSection: net\nPriority: optional\n\
         Maintainer: The Penstock developers <penstock@users.noreply.github.com>\nInstalled-Size: {size}\n\
         Depends: libc6 (>= {}), libgcc-s1\nSuggests: iproute2, iperf, iputils-ping\nHomepage: https://github.com/penstock/penstock\n\
         Description: laboratory and toolkit for Linux traffic control\n \
         Machines, links, tc, ip and iptables commands and traffic, simulated packet by\n packet; checks, explains and compares shaping scripts.\n",
        glibc(&bytes).context("the program names no version of glibc")?
    );
    fs::write(root.join("DEBIAN/control"), control)?;
    let package = out.join(format!("penstock_{VERSION}-{REVISION}_{arch}.deb"));
    run(Command::new("dpkg-deb").args(["--build", "--root-owner-group", "-Zxz"]).arg(&root).arg(&package))?;
    try_deb(&package, &work.join("tried"))?;
    fs::remove_dir_all(&work)?;
    Ok(package)
}

/// Installs a package into an empty root, uses it there, removes it again.
fn try_deb(package: &Path, root: &Path) -> Result<()> {
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc", "run", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    let dpkg = |words: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        // The root has no other packages; what the program needs of them is put there by hand.
        dpkg.args(["--force-depends", "--force-not-root", "--force-script-chrootless"]);
        dpkg.arg(format!("--root={}", root.display())).args(words);
        dpkg
    };
    let file = package.display().to_string();
    run(&mut dpkg(&["--install", &file]))?;
    let installed = root.join("usr/bin/penstock");
    for what in [
        "usr/share/man/man1/penstock-run.1.gz",
        "usr/share/bash-completion/completions/penstock",
        "usr/lib/penstock/tc",
    ] {
        ensure!(root.join(what).symlink_metadata().is_ok(), "the package has no {what}");
    }
    let libraries = said(Command::new("ldd").arg(&installed))?;
    for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let copy = root.join(&library[1..]);
        fs::create_dir_all(copy.parent().context("a library lies in a folder")?)?;
        fs::copy(library, copy)?;
    }
    let inside = |program: &str, words: &[&str]| -> Result<String> {
        let mut inside = Command::new("unshare");
        inside.args(["--user", "--map-root-user", "--root"]).arg(root).arg(program).args(words);
        inside.env_clear().env("XDG_RUNTIME_DIR", "/run").env("PENSTOCK_STATE", "/state");
        said(&mut inside)
    };
    let version = inside("/usr/bin/penstock", &["--version"])?;
    ensure!(version == format!("penstock {VERSION}"), "the installed program says {version}");
    let words = "qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 5k latency 50ms";
    inside("/usr/lib/penstock/tc", &words.split(' ').collect::<Vec<_>>())?;
    let shown = inside("/usr/lib/penstock/tc", &["qdisc", "show", "dev", "eth0"])?;
    ensure!(shown.starts_with("qdisc tbf 1: root"), "the installed tc shows {shown}");
    run(&mut dpkg(&["--purge", "penstock"]))?;
    ensure!(
        !installed.exists() && !root.join("usr/lib/penstock").exists(),
        "removed, it leaves files behind"
    );
    println!("{file}: installed into an empty root, used, removed");
    Ok(())
}

/// The newest version of glibc that a program asks for: `2.34`.
fn glibc(program: &[u8]) -> Option<String> {
    let mut newest: Option<(u32, u32)> = None;
    for at in program.windows(6).enumerate().filter(|(_, w)| *w == b"GLIBC_").map(|(at, _)| at + 6) {
        let text: String = program[at..]
            .iter()
            .take(8)
            .take_while(|b| b.is_ascii_digit() || **b == b'.')
            .map(|&b| char::from(b))
            .collect();
        let mut parts = text.split('.').map(|n| n.parse::<u32>().ok());
        if let (Some(Some(major)), Some(Some(minor))) = (parts.next(), parts.next()) {
            newest = newest.max(Some((major, minor)));
        }
    }
    newest.map(|(major, minor)| format!("{major}.{minor}"))
}

/// What Debian wants to know of licences: those of the program; those of what is in it stand in the inventory.
fn copyright() -> String {
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: penstock\nSource: https://github.com/penstock/penstock\n\n\
     Files: *\nCopyright: The Penstock developers\nLicense: MIT or Apache-2.0\n\
     Comment: The licences of the crates in the program stand in the inventory\n (penstock-VERSION.cdx.json) beside the package.\n"
        .to_owned()
}

/// Publishes all crates without doing so: cargo packs them in the order of what needs what, and builds each from its package alone. The packages, in `out/crates`.
///
/// # Errors
/// A crate cannot be published, or needs what is not in its package.
pub fn crates(out: &Path) -> Result<Vec<PathBuf>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What is not committed yet is tried too.
    cargo.args(["publish", "--dry-run", "--workspace", "--allow-dirty"]).current_dir(repository());
    ensure!(cargo.status().context("cargo")?.success(), "cargo publish --dry-run failed");
    let folder = out.join("crates");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut all = Vec::new();
    for entry in fs::read_dir(repository().join("target/package"))? {
        let path = entry?.path();
        let name = path.file_name().context("a package has a name")?.to_string_lossy().into_owned();
        if name.starts_with("penstock-") && name.ends_with(&format!("-{VERSION}.crate")) {
            let to = folder.join(&name);
            fs::copy(&path, &to)?;
            all.push(to);
        }
    }
    ensure!(!all.is_empty(), "cargo left no packages in target/package");
    all.sort();
    Ok(all)
}

/// Writes `penstock-VERSION.cdx.json`: every crate that is in the program, with version, licence, checksum, and what needs it.
///
/// # Errors
/// cargo fails, or its answer is none.
pub fn sbom(out: &Path) -> Result<PathBuf> {
    let host = said(Command::new("rustc").arg("-vV"))?;
    let host = host.lines().find_map(|l| l.strip_prefix("host: ")).context("rustc tells no host")?.to_owned();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host]);
    let metadata: Value = serde_json::from_str(&said(cargo.current_dir(repository()))?)?;
    let lock = fs::read_to_string(repository().join("Cargo.lock"))?;
    let text = serde_json::to_string_pretty(&inventory(&metadata, &checksums(&lock)?)?)? + "\n";
    let path = out.join(format!("penstock-{VERSION}.cdx.json"));
    fs::write(&path, text)?;
    Ok(path)
}

/// The checksums of a lock file, by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = toml::from_str(lock)?;
    let packages = lock.get("package").and_then(|p| p.as_array()).context("Cargo.lock has no packages")?;
    let of = |package: &toml::Value| {
        let text = |key: &str| package.get(key).and_then(|v| v.as_str()).map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.iter().filter_map(of).collect())
}

/// What is in the program, by what cargo says.
fn inventory(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|p| (text(&p["id"]), p)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|n| (text(&n["id"]), n)).collect();
    let needs = |id: &str| -> Vec<String> {
        let deps = nodes.get(id).map(|n| list(&n["deps"])).unwrap_or_default();
        // Neither those of tests nor those of build scripts are in the program.
        let normal = |d: &&Value| list(&d["dep_kinds"]).iter().any(|k| k["kind"].is_null());
        deps.iter().filter(normal).map(|d| text(&d["pkg"])).collect()
    };
    let first = packages.iter().find(|(_, p)| p["name"] == "penstock-cli").context("no penstock-cli")?.0;
    let (mut seen, mut waiting) = (BTreeSet::from([first.clone()]), vec![first.clone()]);
    while let Some(id) = waiting.pop() {
        for other in needs(&id) {
            if seen.insert(other.clone()) {
                waiting.push(other);
            }
        }
    }
    let purl = |id: &str| {
        let package = &packages[id];
        format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
    };
    let component = |id: &String| {
        let package = &packages[id];
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let mut one = json!({
            "type": if id == first { "application" } else { "library" },
            "bom-ref": purl(id), "name": name, "version": version, "purl": purl(id),
        });
        if let Some(licence) = package["license"].as_str() {
            // Old manifests write a stroke for "or".
            one["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        if let Some(sum) = checksums.get(&(name, version)) {
            one["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        one
    };
    let rest: Vec<&String> = seen.iter().filter(|id| *id != first).collect();
    let depends = |id: &String| {
        let on: BTreeSet<String> = needs(id).iter().map(|d| purl(d)).collect();
        json!({ "ref": purl(id), "dependsOn": on })
    };
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": component(first) },
        "components": rest.into_iter().map(component).collect::<Vec<_>>(),
        "dependencies": seen.iter().map(depends).collect::<Vec<_>>(),
    }))
}

/// Writes `SHA256SUMS` of the files in a folder, and checks it.
///
/// # Errors
/// There is no file, or sha256sum fails.
pub fn sums(out: &Path) -> Result<PathBuf> {
    let mut names: Vec<String> = fs::read_dir(out)?
        .filter_map(|e| {
            e.ok().filter(|e| e.path().is_file()).map(|e| e.file_name().to_string_lossy().into_owned())
        })
        .filter(|name| name != "SHA256SUMS")
        .collect();
    names.sort();
    ensure!(!names.is_empty(), "{} has no files", out.display());
    let text = said(Command::new("sha256sum").args(&names).current_dir(out))?;
    let path = out.join("SHA256SUMS");
    fs::write(&path, text + "\n")?;
    said(Command::new("sha256sum").args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(out))?;
    Ok(path)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(command: &mut Command) -> Result<()> {
    said(command).map(drop)
}

/// What a command prints, without the last line break.
///
/// # Errors
/// It cannot be started or fails, with what it says of that.
pub fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_found() {
        assert_eq!(glibc(b"x\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE"), Some("2.34".to_owned()));
        assert_eq!(glibc(b"nothing"), None);
    }

    #[test]
    fn the_inventory_has_what_cargo_tree_has() {
        let folder = std::env::temp_dir().join(format!("penstock-sbom-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = sbom(&folder).unwrap();
        let inventory: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let own: BTreeSet<String> = inventory["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| format!("{} v{}", c["name"].as_str().unwrap(), c["version"].as_str().unwrap()))
            .collect();
        let mut cargo = Command::new("cargo");
        cargo.args([
            "tree",
            "--locked",
            "--package",
            "penstock-cli",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ]);
        let tree = said(cargo.current_dir(repository())).unwrap();
        let named = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let mut tree: BTreeSet<String> = tree.lines().map(named).collect();
        tree.remove(&format!("penstock-cli v{VERSION}"));
        // Features of other members of the workspace may bring more into cargo's own account, never less.
        let missing: Vec<&String> = tree.difference(&own).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let extra = own.difference(&tree).count();
        assert!(extra * 10 <= own.len(), "{extra} of {} are not in the program", own.len());
        for component in inventory["components"].as_array().unwrap() {
            let name = component["name"].as_str().unwrap();
            assert!(component["licenses"][0]["expression"].is_string(), "{name} has no licence");
            assert!(name.starts_with("penstock") || component["hashes"][0]["content"].is_string(), "{name}");
        }
        // And what is summed is checked.
        let sums = sums(&folder).unwrap();
        assert!(fs::read_to_string(sums).unwrap().ends_with(&format!("  penstock-{VERSION}.cdx.json\n")));
        fs::remove_dir_all(folder).unwrap();
    }
}
