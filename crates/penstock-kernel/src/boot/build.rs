//! Builds the user-mode kernel of the virtual ground from Debian's `linux-source` package.
//!
//! Four places of the source are changed on the way, so that time and chance are exact:
//! the user-mode timer counts single nanoseconds and rounds nothing up; randomness asked of the host comes from the
//! seed in `UML_SEED`; the command line, which holds names of temporary folders, is not mixed into it; and the
//! floating-point state of a process is restored with the length that the host's processor has, not a fixed one
//! (processors with large tile registers refuse a shorter one).

use super::cache;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The profile whose kernel is built.
pub const PROFILE: &str = "6.12";
/// The package.
const SOURCE: &str = "linux-source-6.12";
/// What is switched on over the smallest configuration.
const CONFIG: &str = include_str!("config.txt");

/// One change of a source file: the file, what stands there, what is to stand there.
struct Change {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const CHANGES: &[Change] = &[
    Change {
        file: "arch/um/include/linux/time-internal.h",
        from: "#define TIMER_MULTIPLIER 256",
        to: "#define TIMER_MULTIPLIER 1",
    },
    Change {
        file: "arch/um/include/linux/time-internal.h",
        from: "#define TIMER_MIN_DELTA 500",
        to: "#define TIMER_MIN_DELTA 1",
    },
    Change {
        file: "arch/um/os-Linux/util.c",
        from: "return getrandom(buf, len, flags);",
        to: "static unsigned long long state;
	const char *seed = getenv(\"UML_SEED\");
	unsigned char *out = buf;
	size_t at;

	if (!seed)
		return getrandom(buf, len, flags);
	if (!state)
		state = strtoull(seed, NULL, 10) * 2 + 1;
	for (at = 0; at < len; at++) {
		/* splitmix64 */
		unsigned long long z = (state += 0x9e3779b97f4a7c15ULL);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		out[at] = (z ^ (z >> 31)) >> 56;
	}
	return len;",
    },
    Change {
        file: "drivers/char/random.c",
        from: "_mix_pool_bytes(command_line, strlen(command_line));",
        to: "(void)command_line;",
    },
    Change {
        file: "arch/x86/um/os-Linux/registers.c",
        from: "#include <sys/uio.h>",
        to: "#include <string.h>\n#include <sys/uio.h>",
    },
    Change {
        file: "arch/x86/um/os-Linux/registers.c",
        from: "		iov.iov_base = fp_regs;
		iov.iov_len = FP_SIZE * sizeof(unsigned long);
		if (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov) < 0)",
        to: "		/* the state as long as this processor has it: asked once, the tail zero */
		static char state[1 << 16] __attribute__((aligned(64)));
		static size_t length;
		size_t known = FP_SIZE * sizeof(unsigned long);

		iov.iov_base = state;
		if (length == 0) {
			iov.iov_len = sizeof(state);
			if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) < 0)
				return -errno;
			length = iov.iov_len;
			memset(state, 0, sizeof(state));
		}
		memcpy(state, fp_regs, length < known ? length : known);
		iov.iov_len = length;
		if (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov) < 0)",
    },
];

/// Blanks and tabs of any number as one blank: what a `#define` is aligned with differs.
fn squeezed(text: &str) -> String {
    text.split([' ', '\t']).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Carries out a change; a text where it does not stand exactly once is not the source it was made for.
fn change(text: &str, change: &Change) -> Result<String, String> {
    let wrong = || {
        format!(
            "{}: this kernel source is not laid out as expected; {SOURCE} is the one it was made for",
            change.file
        )
    };
    if text.matches(change.from).count() == 1 {
        return Ok(text.replacen(change.from, change.to, 1));
    }
    let is = |line: &&str| squeezed(line) == change.from;
    let lines: Vec<&str> = text.lines().filter(is).collect();
    match lines[..] {
        [line] => Ok(text.replacen(line, change.to, 1)),
        _ => Err(wrong()),
    }
}

/// The configuration as `merge_config.sh` reads it.
fn fragment() -> String {
    let words = CONFIG.split_whitespace().map(|name| format!("CONFIG_{name}=y\n"));
    words.chain(["CONFIG_NET_EMATCH_STACK=32\n".to_owned()]).collect()
}

/// Builds it; `say` is told each step. Gives the path of the kernel.
///
/// # Errors
/// What is missing (with the package that has it), or the step that failed with the end of its log.
pub fn build(say: &mut dyn FnMut(&str)) -> Result<PathBuf, String> {
    let programs = [
        ("gcc", "gcc"),
        ("make", "make"),
        ("bc", "bc"),
        ("xz", "xz-utils"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("dpkg", "dpkg"),
        ("apt-get", "apt"),
    ];
    let missing: Vec<&str> =
        programs.iter().filter(|(p, _)| !crate::exec::has(p)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        return Err(format!("to build the kernel, first: apt-get install {}", missing.join(" ")));
    }
    if std::env::consts::ARCH != "x86_64" {
        return Err(format!(
            "the user-mode kernel is built for x86_64; this machine is {}",
            std::env::consts::ARCH
        ));
    }
    let cache = cache();
    let work = cache.join("build");
    fs::create_dir_all(&work).map_err(|e| format!("cannot make {}: {e}", work.display()))?;
    let source = work.join(SOURCE);
    let shell = |text: &str, log: &str| -> Result<(), String> {
        let path = work.join(log);
        let file = fs::File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let err = file.try_clone().map_err(|e| format!("{}: {e}", path.display()))?;
        let mut command = Command::new("bash");
        command.args(["-ec", text]).current_dir(&work).stdin(Stdio::null()).stdout(file).stderr(err);
        let status = command.status().map_err(|e| format!("cannot run bash: {e}"))?;
        if status.success() {
            return Ok(());
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let end: Vec<&str> = text.lines().rev().take(5).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        Err(format!("{log} failed:\n  {}\nall of it: {}", end.join("\n  "), path.display()))
    };
    if !source.join(".changed").exists() {
        say(&format!("fetching {SOURCE}"));
        // apt's own sandbox user may not write below a home folder.
        let own = if nix::unistd::geteuid().is_root() { "-o APT::Sandbox::User=root" } else { "" };
        shell(
            &format!("rm -rf package {SOURCE} {SOURCE}_*.deb; apt-get -q {own} download {SOURCE}"),
            "fetch.log",
        )?;
        say("unpacking");
        let unpack = format!(
            "dpkg -x {SOURCE}_*.deb package; tar xf package/usr/src/{SOURCE}.tar.*; rm -rf package {SOURCE}_*.deb"
        );
        shell(&unpack, "unpack.log")?;
        for one in CHANGES {
            let path = source.join(one.file);
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            fs::write(&path, change(&text, one)?).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        fs::write(source.join(".changed"), "").map_err(|e| e.to_string())?;
    }
    say("configuring");
    fs::write(work.join("fragment"), fragment()).map_err(|e| e.to_string())?;
    let configure = format!(
        "mkdir -p out; make -s -C {SOURCE} ARCH=um O=\"$PWD/out\" tinyconfig; cd out; \
         KCONFIG_CONFIG=.config ../{SOURCE}/scripts/kconfig/merge_config.sh -m .config ../fragment; make -s ARCH=um olddefconfig"
    );
    shell(&configure, "configure.log")?;
    for name in ["UML_TIME_TRAVEL_SUPPORT", "NET_SCH_NETEM", "NET_SCH_HTB", "VETH", "HOSTFS", "OVERLAY_FS"] {
        let config = fs::read_to_string(work.join("out/.config")).unwrap_or_default();
        if !config.contains(&format!("CONFIG_{name}=y")) {
            return Err(format!(
                "this kernel source does not take CONFIG_{name}=y; see {}",
                work.join("configure.log").display()
            ));
        }
    }
    say("compiling, some ten minutes of one processor");
    shell("make -C out -j\"$(nproc)\" ARCH=um", "compile.log")?;
    shell(
        "cp out/linux ../linux.new && strip ../linux.new && mv ../linux.new ../linux && cp out/.config ../config",
        "install.log",
    )?;
    let _ = fs::remove_dir_all(&work);
    Ok(cache.join("linux"))
}

/// What there is: a sentence for `penstock kernel status`.
pub fn status() -> String {
    let show = |path: &Path| {
        let size = fs::metadata(path).map_or(0, |m| m.len());
        format!("{} ({:.1} MB)", path.display(), size as f64 / 1e6)
    };
    super::find().map_or_else(|e| e, |path| show(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_fits_once_or_not_at_all() {
        let one = Change { file: "f", from: "#define A 5", to: "#define A 1" };
        assert_eq!(change("x\n#define A\t\t5\ny\n", &one).unwrap(), "x\n#define A 1\ny\n");
        assert!(change("#define A 6\n", &one).unwrap_err().contains("not laid out as expected"));
        assert!(change("#define A 5\n#define A 5\n", &one).is_err());
    }

    #[test]
    fn the_configuration_has_what_runs_need() {
        let text = fragment();
        for name in [
            "NET_SCH_NETEM",
            "NET_SCH_HTB",
            "NET_ACT_MIRRED",
            "NET_CLS_U32",
            "BRIDGE",
            "VETH",
            "HOSTFS",
            "OVERLAY_FS",
            "IP_NF_MANGLE",
        ] {
            assert!(text.contains(&format!("CONFIG_{name}=y\n")), "{name}");
        }
    }
}
