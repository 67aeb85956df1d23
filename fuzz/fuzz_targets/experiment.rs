//! Any text as an experiment file, and as the trace that it names.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = penstock_lab::experiment::parse_with(text, "fuzz.toml", &|name| match name.ends_with(".trace") {
        true => Ok(text.to_owned()),
        false => Err("no files here".into()),
    });
    let link = "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = { trace = \"@x\" }\n";
    let _ = penstock_lab::experiment::parse_with(link, "trace.toml", &|_| Ok(text.to_owned()));
});
