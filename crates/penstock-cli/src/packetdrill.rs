//! `penstock packetdrill`.

use crate::{say, show};
use anyhow::Result;
use penstock_files::Roots;
use penstock_model::Kernel;
use penstock_packetdrill::{Options, Script, files_of, parse};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `penstock packetdrill` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Scripts are those of google/packetdrill; they run in virtual time, without root and without a kernel.\n\
                  Try:  penstock packetdrill --allow-path gtests/net gtests/net/tcp/slow_start/*.pkt"
)]
pub struct Args {
    /// The scripts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A word that stands for something else in the scripts
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// The machine's kernel
    #[arg(long, value_name = "VERSION", default_value = "6.12")]
    kernel: String,
    /// Timer interrupts per second, CONFIG_HZ of the machine's kernel
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=1000))]
    hz: u32,
    /// Another folder whose files commands of the scripts may name (`../common/defaults.sh`)
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// Show what commands and code print
    #[arg(short, long)]
    verbose: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Does it. Exit status 1 when a script does not pass, 2 when one cannot be read.
pub fn main(args: &Args) -> Result<ExitCode> {
    let kernel = Kernel::parse(&args.kernel).map_err(anyhow::Error::msg)?;
    let mut defines = Vec::new();
    for define in &args.define {
        let Some((name, value)) = define.split_once('=') else {
            anyhow::bail!("--define {define}: write NAME=VALUE");
        };
        defines.push((name.to_owned(), value.to_owned()));
    }
    args.files.iter().try_for_each(|path| crate::near::there(path))?;
    // All is read first: what scripts do then reaches no file.
    let read: Vec<_> = args.files.iter().map(|path| (path, one(path, &defines, args))).collect();
    penstock_files::confine(&[]);
    let (mut failed, mut unread, mut rows) = (0, 0, Vec::new());
    for (path, lent) in read {
        let name = path.display().to_string();
        let (script, files, refused) = match lent {
            Ok(lent) => lent,
            Err(wrong) => {
                unread += 1;
                say(&format!("penstock: {name}{wrong}"));
                rows.push(
                    json!({ "file": name, "passed": false, "message": wrong.trim_start_matches([':', ' ']) }),
                );
                continue;
            }
        };
        let told = penstock_packetdrill::run(&script, &Options { kernel, hz: args.hz, files });
        if args.verbose && !args.json {
            show(&told.printed)?;
        }
        let Some(failure) = told.failure else {
            if args.json {
                rows.push(json!({ "file": name, "passed": true }));
            } else if args.files.len() > 1 {
                show(&format!("passed  {name}\n"))?;
            }
            continue;
        };
        failed += 1;
        let notes: String = refused.iter().map(|why| format!("\nnot read: {why}")).collect();
        let message = failure.message + &notes;
        if args.json {
            rows.push(json!({ "file": name, "passed": false, "line": failure.line, "message": message }));
            continue;
        }
        let place = if failure.line > 0 { format!("{name}:{}", failure.line) } else { name };
        show(&format!("{}{place}: {message}\n", if args.files.len() > 1 { "FAILED  " } else { "" }))?;
    }
    let all = args.files.len();
    if args.json {
        show(&format!("{}\n", serde_json::to_string_pretty(&rows)?))?;
    } else if all > 1 {
        show(&format!("{} of {all} scripts passed\n", all - failed - unread))?;
    }
    Ok(ExitCode::from(if unread > 0 { 2 } else { u8::from(failed > 0) }))
}

/// A script, the files beside it that its commands name, and why others of them are not read.
type Lent = (Script, Vec<(String, String)>, Vec<String>);

/// Reads one script; or what stands behind its name in the message where it cannot be read.
fn one(path: &Path, defines: &[(String, String)], args: &Args) -> Result<Lent, String> {
    let bytes = penstock_files::read(path, penstock_files::TEXT).map_err(|e| format!(": {e}"))?;
    let text = String::from_utf8(bytes).map_err(|_| ": this is no text".to_owned())?;
    let script = parse(&text, defines).map_err(|f| format!(":{}: {}", f.line, f.message))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut roots = Roots::beside(path).map_err(|e| format!(": {e}"))?;
    for allowed in &args.allow_path {
        roots = roots.allow(allowed).map_err(|e| format!(": --allow-path {e}"))?;
    }
    let mut refused = Vec::new();
    let mut read = |name: &str| match roots.read(&folder.join(name), penstock_files::TEXT) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(why) => {
            refused.push(format!("{name}: {why}"));
            None
        }
    };
    let files = files_of(&script, &mut read);
    Ok((script, files, refused))
}
