use super::*;
use crate::record::{Class, Flow, Host, Interface, Link, Qdisc, Rig};

fn record() -> Record {
    let mut r = Record::from_json(include_str!("../../tests/data/record-1.json")).unwrap();
    (r.apps, r.flows, r.devices, r.groups) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    r.rig = Rig::default();
    r.duration_s = 10.0;
    r
}

fn page(record: &Record, series: &Series) -> String {
    html(&Page { record, series, outputs: &[], tc: &[] })
}

fn qdisc(kind: &str, handle: &str, parent: &str) -> Qdisc {
    Qdisc { kind: kind.into(), handle: handle.into(), parent: parent.into(), bytes: 1000, ..Qdisc::default() }
}

fn device(qdiscs: Vec<Qdisc>, classes: Vec<Class>) -> Device {
    Device { host: "r".into(), dev: "eth0".into(), sojourn_ms: None, qdiscs, classes, meters: Vec::new() }
}

fn curve(series: &mut Series, host: &str, object: &str, metric: &str, value: f64) {
    for i in 0..100 {
        series.add(host, object, metric, 0.1 * f64::from(i), value + f64::from(i % 3));
    }
}

/// What the data of a page says of a chart's curves: name and colour.
fn curves(html: &str, id: &str) -> Vec<(String, i64)> {
    let head = html.split("id=\"charts-head\">").nth(1).unwrap().split("</script>").next().unwrap();
    let head: serde_json::Value = serde_json::from_str(head).unwrap();
    let panels = head["panels"].as_array().unwrap();
    let Some(panel) = panels.iter().find(|p| p["id"] == id) else { return Vec::new() };
    let told = |c: &serde_json::Value| (c["n"].as_str().unwrap().to_owned(), c["c"].as_i64().unwrap());
    panel["curves"].as_array().unwrap().iter().map(told).collect()
}

/// tbf and red show their inner qdisc as a class; a device with such a one has its queue drawn all the same.
#[test]
fn the_queue_of_every_kind_is_drawn() {
    for kind in ["tbf", "red", "netem", "fq_codel", "cake", "pfifo", "codel", "sfq", "fq"] {
        let mut r = record();
        let inner =
            Class { kind: kind.into(), classid: "1:1".into(), parent: "root".into(), ..Class::default() };
        let classes = if matches!(kind, "pfifo" | "codel" | "fq") { Vec::new() } else { vec![inner] };
        r.devices.push(device(vec![qdisc(kind, "1:", "root")], classes));
        let mut series = Series::new();
        let object = format!("eth0 {kind} 1:");
        curve(&mut series, "r", &object, "backlog_bytes", 9000.0);
        curve(&mut series, "r", &object, "throughput_bit_s", 9e6);
        curve(&mut series, "r", &object, "drops_packets", 1.0);
        curve(&mut series, "r", "eth0", "marks_packets", 1.0);
        let html = page(&r, &series);
        assert_eq!(curves(&html, "r-eth0-queue"), [(format!("{kind} 1:"), 0)], "{kind}");
        assert_eq!(curves(&html, "r-eth0-rate").len(), 1, "{kind}");
        let lost: Vec<String> = curves(&html, "r-eth0-losses").into_iter().map(|c| c.0).collect();
        assert_eq!(lost, [format!("dropped {kind} 1:"), "marked".to_owned()]);
        assert!(!html.contains("class 1:1<"), "{kind}: a row for the place of the inner qdisc");
    }
}

/// Classes have colours of their own, the flows within a queue have none: they are no classes that anybody made.
#[test]
fn classes_are_told_apart_and_flows_in_queues_are_left_out() {
    let mut r = record();
    let class = |kind: &str, id: &str, parent: &str| Class {
        kind: kind.into(),
        classid: id.into(),
        parent: parent.into(),
        rate_bit_s: (kind == "htb").then_some(1e6),
        ceil_bit_s: (kind == "htb").then_some(8e6),
        ..Class::default()
    };
    let classes = vec![
        class("htb", "1:1", "root"),
        Class { leaf: Some("110:".into()), ..class("htb", "1:10", "1:1") },
        class("htb", "1:20", "1:1"),
        class("fq_codel", "110:16a", "110:"),
        class("fq_codel", "110:3", "110:"),
    ];
    r.devices.push(device(vec![qdisc("htb", "1:", "root"), qdisc("fq_codel", "110:", "1:10")], classes));
    let mut series = Series::new();
    for object in [
        "eth0 htb 1:",
        "eth0 class 1:1",
        "eth0 class 1:10",
        "eth0 class 1:20",
        "eth0 class 110:16a",
        "eth0 class 110:3",
    ] {
        curve(&mut series, "r", object, "throughput_bit_s", 1e6);
        curve(&mut series, "r", object, "backlog_bytes", 1e3);
    }
    curve(&mut series, "r", "eth0 fq_codel 110:", "drops_packets", 2.0);
    curve(&mut series, "r", "eth0 htb 1:", "drops_packets", 2.0);
    let html = page(&r, &series);
    assert_eq!(curves(&html, "r-eth0-rate"), [("1:10 (fq_codel)".to_owned(), 0), ("1:20".to_owned(), 1)]);
    assert_eq!(curves(&html, "r-eth0-losses"), [("dropped 1:10 (fq_codel)".to_owned(), 0)]);
    assert!(html.contains("class 1:10") && !html.contains("110:16a"));
    assert!(html.contains("ceil 8 Mbit/s") && html.contains("\"r\":1000000.0"));
}

/// Drops and marks of every qdisc: a leaf's marks beside its drops, what a classful one lost itself, and those the kernel put into classes.
#[test]
fn every_qdisc_has_its_drops_and_marks() {
    let mut r = record();
    let class = |kind: &str, id: &str, leaf: Option<&str>| Class {
        kind: kind.into(),
        classid: id.into(),
        parent: "root".into(),
        leaf: leaf.map(str::to_owned),
        ..Class::default()
    };
    let classes = vec![
        class("htb", "1:10", Some("10:")),
        class("htb", "1:20", Some("20:")),
        class("htb", "1:30", None),
    ];
    let qdiscs =
        vec![qdisc("htb", "1:", "root"), qdisc("fq_codel", "10:", "1:10"), qdisc("red", "20:", "1:20")];
    r.devices.push(device(qdiscs, classes));
    let queues = vec![
        qdisc("mq", "8001:", "root"),
        qdisc("fq_codel", "0:", "8001:1"),
        qdisc("fq_codel", "0:", "8001:2"),
    ];
    r.devices.push(Device {
        dev: "eth1".into(),
        ..device(queues, vec![class("mq", "8001:1", None), class("mq", "8001:2", None)])
    });
    let mut series = Series::new();
    // The root counts what its leaves drop, and 4, 2 and none of its own.
    for (object, drops) in [
        ("eth0 htb 1:", 12.0),
        ("eth0 fq_codel 10:", 2.0),
        ("eth0 class 1:10", 2.0),
        ("eth0 red 20:", 3.0),
        ("eth0 class 1:30", 3.0),
    ] {
        curve(&mut series, "r", object, "drops_packets", drops);
    }
    curve(&mut series, "r", "eth0 fq_codel 10:", "marks_packets", 1.0);
    curve(&mut series, "r", "eth0 red 20:", "marks_packets", 5.0);
    curve(&mut series, "r", "eth0", "marks_packets", 6.0);
    curve(&mut series, "r", "eth1 fq_codel 0: in 8001:2", "marks_packets", 6.0);
    curve(&mut series, "r", "eth1 fq_codel 0: in 8001:2", "drops_packets", 6.0);
    curve(&mut series, "r", "eth1 mq 8001:", "drops_packets", 6.0);
    let html = page(&r, &series);
    let of = |id: &str| curves(&html, id);
    let told = |text: &str, colour| (text.to_owned(), colour);
    assert_eq!(
        of("r-eth0-losses"),
        [
            told("dropped htb 1:", 3),
            told("dropped 1:10 (fq_codel)", 0),
            told("marked 1:10 (fq_codel)", 0),
            told("dropped 1:20 (red)", 1),
            told("marked 1:20 (red)", 1),
            told("dropped 1:30", 2),
        ]
    );
    assert_eq!(
        of("r-eth1-losses"),
        [told("dropped 8001:2 (fq_codel)", 1), told("marked 8001:2 (fq_codel)", 1)]
    );
    let (page, device) = (Page { record: &r, series: &series, outputs: &[], tc: &[] }, &r.devices[0]);
    let own = panels::own_drops(&page, device, &device.qdiscs[0]);
    assert_eq!(own.iter().take(3).map(|p| p.1).collect::<Vec<_>>(), [4.0, 2.0, 0.0]);
}

/// A program that gets more than its line carries: the page says how that can be.
#[test]
fn goodput_above_the_line_is_explained() {
    let mut r = record();
    let host = |name: &str| Host {
        name: name.into(),
        kernel: None,
        tcp: None,
        system: None,
        forwards: false,
        via: None,
        processor_share: None,
        devices: vec![Interface { dev: "eth0".into(), addresses: Vec::new() }],
    };
    r.rig.hosts = vec![host("a"), host("b")];
    r.rig.links.push(Link {
        ends: vec!["a:eth0".into(), "b:eth0".into()],
        rate_bit_s: Some(4e6),
        end_rates_bit_s: Vec::new(),
        delay_ms: 1.0,
        loss: None,
    });
    r.flows.push(Flow {
        name: "f".into(),
        from: "a".into(),
        to: "b".into(),
        proto: "tcp".into(),
        ..Flow::default()
    });
    let mut series = Series::new();
    curve(&mut series, "", "flow f", "goodput_bit_s", 3e6);
    assert!(!page(&r, &series).contains("head-of-line"));
    series.add("", "flow f", "goodput_bit_s", 9.95, 17e6);
    let html = page(&r, &series);
    assert!(
        html.contains("f at 9.95 s: 17 Mbit/s where at most 4 Mbit/s come in")
            && html.contains("head-of-line")
    );
}

/// Equal connections with unequal shares and no loss: the page says why they stay so.
#[test]
fn uneven_shares_without_loss_are_explained() {
    let mut r = record();
    for (n, rate) in [41.8e6, 17.4e6, 17.4e6, 17.4e6].into_iter().enumerate() {
        let name = format!("f-{n}");
        r.flows.push(Flow {
            name,
            from: "a".into(),
            to: "b".into(),
            proto: "tcp".into(),
            goodput_bit_s: rate,
            ..Flow::default()
        });
    }
    let mut series = Series::new();
    curve(&mut series, "", "flow f-0", "goodput_bit_s", 41.8e6);
    assert!(page(&r, &series).contains(
        "The 4 connections from a to b have between 17.4 Mbit/s and 41.8 Mbit/s, and none of them lost"
    ));
    r.flows[1].lost_packets = 1;
    assert!(!page(&r, &series).contains("none of them lost"));
}

#[test]
fn many_like_machines_are_one_box() {
    let mut r = record();
    let host = |name: String| Host {
        name,
        kernel: Some("6.12".into()),
        tcp: None,
        system: None,
        forwards: false,
        via: None,
        processor_share: None,
        devices: Vec::new(),
    };
    r.rig.hosts.push(host("r".into()));
    for n in 1..=50 {
        r.rig.hosts.push(host(format!("u{n}")));
        let ends = vec![format!("r:p{n}"), format!("u{n}:eth0")];
        r.rig.links.push(Link {
            ends,
            rate_bit_s: Some(1e8),
            end_rates_bit_s: Vec::new(),
            delay_ms: 0.0,
            loss: None,
        });
    }
    let html = page(&r, &Series::new());
    assert!(html.contains("× 48") && html.contains("u3 … u50") && html.contains("Network of 51 machines"));
    // r, two of them, and three rectangles of the box.
    assert_eq!(html.matches("<rect class=\"host").count(), 6);
}

#[test]
fn a_page_refers_to_nothing_outside() {
    let mut r = record();
    r.flows.push(Flow {
        name: "f".into(),
        from: "a".into(),
        to: "b".into(),
        proto: "tcp".into(),
        ..Flow::default()
    });
    let mut series = Series::new();
    curve(&mut series, "", "flow f", "goodput_bit_s", 3e6);
    let html = page(&r, &series);
    // That there is no icon is said by a link.
    assert_eq!(html.matches(NO_ICON).count(), 1);
    let html = html.replace(NO_ICON, "");
    for word in [" src=", "<link", "@import", "url(http", "fetch("] {
        assert!(!html.contains(word), "{word}");
    }
    assert_eq!(html, page(&r, &series).replace(NO_ICON, ""));
    // Without anything to draw there is no script at all.
    assert!(!page(&record(), &Series::new()).contains("<script"));
}

#[test]
fn jitter_is_told_by_mean_and_greatest() {
    let mut r = record();
    r.flows.push(Flow {
        name: "call".into(),
        from: "a".into(),
        to: "b".into(),
        proto: "udp".into(),
        jitter_ms: Some(0.00069),
        jitter_mean_ms: Some(4.5),
        jitter_max_ms: Some(61.0),
        ..Flow::default()
    });
    let html = page(&r, &Series::new());
    assert!(
        html.contains("jitter mean")
            && html.contains("4.5 ms")
            && html.contains("61 ms")
            && !html.contains("690 ns")
    );
}
