//! Devices with their qdiscs and classes, as a script leaves them.

use penstock_check::Facts;
use penstock_check::explain;
use penstock_model::Handle;
use serde_json::{Value, json};

/// The devices of all namespaces that the script puts qdiscs on, the last state of each.
pub(crate) fn devices(facts: &Facts) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for there in std::iter::once(facts).chain(&facts.spaces) {
        for (at, device) in there.devices.iter().enumerate() {
            let later = there.devices[at + 1..].iter().any(|d| d.name == device.name);
            if !later && device.qdiscs.iter().any(|q| q.step.is_some()) {
                all.push(of(there, device));
            }
        }
    }
    all
}

/// Bits per second of bytes.
fn bits(bytes: u64) -> Option<u64> {
    (bytes > 0).then(|| bytes.saturating_mul(8))
}

fn of(facts: &Facts, device: &penstock_check::Device) -> Value {
    let place = |step: Option<usize>| step.and_then(|at| facts.steps.get(at));
    let link = facts.link_of(&device.name);
    let parent = |handle: Handle| match handle {
        Handle::ROOT => "root".to_owned(),
        Handle::INGRESS => "ingress".to_owned(),
        other => other.to_string(),
    };
    let qdiscs = device.qdiscs.iter().map(|q| {
        let step = place(q.step);
        json!({
            "kind": q.kind, "handle": q.handle.to_string(), "parent": parent(q.parent), "most_bit_s": q.most().and_then(bits),
            "line": step.map(|s| s.line), "file": step.map(|s| &s.file), "command": step.map(|s| s.text()),
        })
    });
    let classes = device.classes.iter().map(|c| {
        let step = place(c.step);
        // Who may send more than its rate takes it from the class above.
        let borrows = (c.kind == "htb" && c.ceil() > c.rate()).then_some(c.parent);
        let borrows = borrows.filter(|&p| device.class(p).is_some()).map(|p| p.to_string());
        json!({
            "kind": c.kind, "id": c.id.to_string(), "parent": parent(c.parent),
            "rate_bit_s": bits(c.rate()), "ceil_bit_s": bits(c.ceil().max(c.most().unwrap_or(0))), "prio": c.options.u64("prio"),
            "borrows": borrows, "leaf": device.leaf(c.id).map(|q| q.kind), "promise": explain::promise(device, c, link),
            "line": step.map(|s| s.line), "file": step.map(|s| &s.file), "command": step.map(|s| s.text()),
        })
    });
    json!({
        "name": device.name, "namespace": facts.prefix, "kind": device.kind, "mtu": device.mtu, "link_bit_s": link.and_then(bits),
        "qdiscs": qdiscs.collect::<Vec<_>>(), "classes": classes.collect::<Vec<_>>(), "filters": device.filters.len(),
    })
}
