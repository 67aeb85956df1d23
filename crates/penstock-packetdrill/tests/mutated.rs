//! Scripts with faults in them: each is refused, or run twice to the same end; nothing panics.

use penstock_model::Rng;
use penstock_packetdrill::{Action, Options, parse, run};

#[test]
fn damaged_scripts_end() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut texts: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "pkt"))
        .map(|p| std::fs::read_to_string(p).unwrap())
        .collect();
    texts.sort();
    assert!(texts.len() > 5);
    let times: u32 = 100;
    let mut ran = 0;
    for (text, n) in texts.iter().zip(0u64..) {
        let mut dice = Rng::named(n, "damage");
        for _ in 0..times {
            let mut bytes: Vec<u8> = text.bytes().collect();
            for _ in 0..1 + dice.below(3) {
                let at = dice.below(bytes.len() as u32) as usize;
                match dice.below(4) {
                    0 => bytes[at] = b"0123456789<>.,()[]{}%*~+-=\"SFRPEWCa \n"[dice.below(37) as usize],
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, b'0' + dice.below(10) as u8),
                    _ => {
                        let end = (at + 1 + dice.below(40) as usize).min(bytes.len());
                        bytes.drain(at..end);
                    }
                }
            }
            let Ok(script) = parse(&String::from_utf8_lossy(&bytes), &[]) else { continue };
            let commands = script.events.iter().any(|e| matches!(e.action, Action::Command(_)));
            if commands || script.init.is_some() || script.cleanup.is_some() {
                continue;
            }
            let once = || run(&script, &Options::default());
            assert_eq!(once(), once());
            ran += 1;
        }
    }
    assert!(ran > 50, "{ran} ran");
}
