use super::*;

fn panel() -> Panel<'static> {
    let mut panel = Panel::over_time("p", "Rate of <b>", Unit::BitPerSecond, 4.0);
    for n in 0..20 {
        let rate = f64::from((n * 7) % 20) * 1e5;
        panel.curves.push(Curve::new(
            format!("flow {n}"),
            n as usize,
            vec![(1.0, rate), (2.0, rate), (4.0, rate)],
        ));
    }
    panel
}

#[test]
fn those_with_most_traffic_are_shown_first_and_all_are_there() {
    let mut live = Live::new(4.0);
    let html = live.figure(&panel());
    assert_eq!(html.matches("class=\"line ").count(), MOST);
    assert!(html.contains("role=\"img\"") && html.contains("<caption") && html.contains("Rate of &lt;b&gt;"));
    assert!(html.contains("1.9 Mbit/s") && !html.contains("<b>"), "{html}");
    let scripts = live.scripts(4.0);
    assert!(scripts.contains("flow 19") && scripts.contains("Rate of \\u003cb>"));
    assert_eq!(scripts.matches("</script>").count(), 4);
    assert!(Live::new(1.0).scripts(1.0).is_empty());
}

#[test]
fn a_picture_of_dots_keeps_the_extremes() {
    let points: Vec<(f64, f64)> = (0..5000).map(|i| (f64::from(i), f64::from(i * 7919 % 5000))).collect();
    let few = sparse(&points, 600);
    assert!(few.len() <= 600 && few.windows(2).all(|w| w[0].0 <= w[1].0));
    for end in [0.0, 4999.0] {
        assert!(few.iter().any(|p| p.1 == end));
    }
    assert_eq!(sparse(&points[..100], 600).len(), 100);
}

#[test]
fn sums_are_of_what_is_there() {
    let a: &[(f64, f64)] = &[(1.0, 1.0), (2.0, 2.0)];
    let b: &[(f64, f64)] = &[(2.0, 3.0), (3.0, f64::NAN), (4.0, 1.0)];
    assert_eq!(sum([a, b]), [(1.0, 1.0), (2.0, 5.0), (4.0, 1.0)]);
}

#[test]
fn long_stretches_without_samples_are_gaps() {
    let with = with_gaps(vec![(0.0, 1.0), (0.3, 1.0), (9.0, 2.0)], 10.0);
    assert_eq!((with.len(), with[2].0), (4, 4.65));
    assert!(with[2].1.is_nan());
    assert_eq!(with_gaps(vec![(0.0, 1.0), (0.5, 1.0)], 100.0).len(), 2);
}

#[test]
fn a_scale_is_logarithmic_where_values_lie_far_apart() {
    let mut far = Panel::over_time("p", "p", Unit::Millisecond, 4.0);
    far.curves.push(Curve::new("a", 0, vec![(1.0, 1.0), (2.0, 31.0)]));
    assert!(far.clone().log_if_far().log);
    far.curves[0].points = vec![(1.0, 2.0), (2.0, 31.0)].into();
    assert!(!far.log_if_far().log);
}
