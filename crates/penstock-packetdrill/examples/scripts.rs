//! Runs packetdrill's scripts and says of each whether it passes: `cargo run -p penstock-packetdrill --example scripts -- FILE…`, with
//! `-v` what they print too; without a file, one of its own.

use penstock_packetdrill::{Options, files_of, parse, run};
use std::path::Path;

/// A server answers a SYN.
const OWN: &str = "
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 1000) = 1000
+0 > P. 1:1001(1000) ack 1
";

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        let report = run(&parse(OWN, &[]).expect("it is well written"), &Options::default());
        match report.failure {
            None => println!("passed"),
            Some(f) => println!("line {}: {}", f.line, f.message),
        }
    }
    let verbose = files.iter().any(|f| f == "-v");
    let files: Vec<String> = files.into_iter().filter(|f| f != "-v").collect();
    let mut passed = 0;
    for file in &files {
        let told = match std::fs::read_to_string(file)
            .map_err(|e| e.to_string())
            .and_then(|text| parse(&text, &[]).map_err(|f| format!("{}: {}", f.line, f.message)))
        {
            Err(wrong) => Some(wrong),
            Ok(script) => {
                let folder = Path::new(file).parent().unwrap_or(Path::new("."));
                let lent = files_of(&script, &mut |path| std::fs::read_to_string(folder.join(path)).ok());
                let report = run(&script, &Options { files: lent, ..Options::default() });
                if verbose {
                    print!("{}", report.printed);
                }
                report.failure.map(|f| format!("{}: {}", f.line, f.message))
            }
        };
        passed += usize::from(told.is_none());
        println!(
            "{} {file}{}",
            if told.is_none() { "ok  " } else { "FAIL" },
            told.map_or(String::new(), |t| format!("\n{t}"))
        );
    }
    if !files.is_empty() {
        println!("{passed} of {} pass", files.len());
    }
}
