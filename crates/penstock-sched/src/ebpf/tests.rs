use super::*;
use crate::testing::packet;
use penstock_model::{Rng, Time, Value};
use penstock_packet::L3;

/// An instruction's bytes.
fn i(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> [u8; 8] {
    let mut bytes = [code, src << 4 | dst, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&off.to_le_bytes());
    bytes[4..].copy_from_slice(&imm.to_le_bytes());
    bytes
}
const RETURN: (u8, u8, u8, i16, i32) = (0x95, 0, 0, 0, 0);

fn object(code: &[(u8, u8, u8, i16, i32)], maps: Vec<Options>) -> Options {
    let insns: Vec<u8> = code.iter().flat_map(|&(c, d, s, o, k)| i(c, d, s, o, k)).collect();
    let object = Options::new().with("insns", insns).with("license", "GPL").with("program", "p");
    Options::new().with("object", object.with("maps", maps))
}
fn map(kind: u32, key: u32, value: u32, max: u32) -> Options {
    Options::new().with("type", kind).with("key_size", key).with("value_size", value).with("max_entries", max)
}
fn load(code: &[(u8, u8, u8, i16, i32)], maps: Vec<Options>) -> Result<Program, Refusal> {
    Program::load(&object(code, maps), Kernel::V6_12)
}

/// What a program answers to a datagram of 100 bytes from 10.0.0.1 to 10.0.0.2, which it may change.
fn run_on(program: &Program, skb: &mut Skb) -> u32 {
    let (mut rng, mut sent, mut redirect) = (Rng::named(1, "bpf"), Vec::new(), None);
    let now = Time::from_ns(5_000);
    let mut lent = Lent { now, rng: &mut rng, sent: &mut sent, redirect: &mut redirect };
    program.run(skb, 0, &mut lent).said
}
#[track_caller]
fn answer(code: &[(u8, u8, u8, i16, i32)]) -> u32 {
    run_on(&load(code, Vec::new()).unwrap(), &mut packet(0, 100))
}

#[test]
fn arithmetic_is_that_of_rfc_9669() {
    // `r0 = a; r1 = b; r0 OP= r1; return r0`, of 64 and of 32 bits.
    let both = |op: u8, off: i16, a: i32, b: i32| {
        let of = |class: u8| {
            answer(&[(0xb7, 0, 0, 0, a), (0xb7, 1, 0, 0, b), (op | 8 | class, 0, 1, off, 0), RETURN])
        };
        (of(7), of(4))
    };
    assert_eq!(both(0x00, 0, i32::MAX, 1), (0x8000_0000, 0x8000_0000));
    assert_eq!((both(0x30, 0, 7, 0), both(0x90, 0, 7, 0)), ((0, 0), (7, 7)), "by nothing");
    // Unsigned, of 64 bits -8 is a large number.
    assert_eq!(both(0x30, 0, -8, 2), (0xffff_fffc, 0x7fff_fffc));
    assert_eq!(both(0x30, 1, -8, 3), (-2i32 as u32, -2i32 as u32));
    assert_eq!(both(0x90, 1, -8, 3), (-2i32 as u32, -2i32 as u32));
    assert_eq!(both(0xc0, 0, -8, 1), (-4i32 as u32, -4i32 as u32));
    assert_eq!(
        (both(0x60, 0, 1, 33), both(0x70, 0, 4, 33)),
        ((0, 2), (0, 2)),
        "shifts count modulo the width"
    );
    assert_eq!(
        (both(0xb0, 8, 0, 0x80), both(0xb0, 16, 0, 0x8000)),
        ((0xffff_ff80, 0xffff_ff80), (0xffff_8000, 0xffff_8000))
    );
    // The order of bytes: to the wire's, to this machine's, swapped.
    let end = |code: u8, bits: i32| answer(&[(0xb7, 0, 0, 0, 0x1234_5678), (code, 0, 0, 0, bits), RETURN]);
    assert_eq!(
        [end(0xdc, 16), end(0xdc, 32), end(0xd4, 16), end(0xd7, 32)],
        [0x7856, 0x7856_3412, 0x5678, 0x7856_3412]
    );
}

#[test]
fn jumps_compare_as_they_say() {
    // `r0 = 1; if r1 OP imm goto out; r0 = 0; out: return`.
    let taken = |code: u8, a: i32, imm: i32| {
        answer(&[(0xb7, 1, 0, 0, a), (0xb7, 0, 0, 0, 1), (code, 1, 0, 1, imm), (0xb7, 0, 0, 0, 0), RETURN])
            == 1
    };
    // A constant is extended with its sign: -1 is the largest number.
    assert!(taken(0x15, -1, -1) && taken(0x25, -1, 5) && !taken(0x65, -1, 5) && taken(0xc5, -1, 5));
    assert!(taken(0x45, 6, 4) && !taken(0x45, 6, 1) && taken(0xb5, 5, 5) && !taken(0xa5, 5, 5));
    assert!(taken(0x16, -1, -1) && taken(0x26, -1, 5) && !taken(0x66, -1, 5));
}

#[test]
fn headers_are_read_directly() {
    // The destination address of IPv4, where the packet is long enough: `data + 34 > data_end`.
    let code = [
        (0x61, 2, 1, 76, 0),
        (0x61, 3, 1, 80, 0),
        (0xb7, 0, 0, 0, 0),
        (0xbf, 4, 2, 0, 0),
        (0x07, 4, 0, 0, 34),
        (0x2d, 4, 3, 1, 0),
        (0x61, 0, 2, 30, 0),
        RETURN,
    ];
    assert_eq!(answer(&code).to_be(), 0x0a00_0002);
    // Without the question it is refused.
    let bare = [(0x61, 2, 1, 76, 0), (0x61, 0, 2, 30, 0), RETURN];
    assert_eq!(
        load(&bare, Vec::new()).map(drop),
        Err(Refusal::new(KernelError::EACCES, "invalid access to packet"))
    );
    // The old loads ask by themselves.
    let old = |at| answer(&[(0xbf, 6, 1, 0, 0), (0x20, 0, 0, 0, at), RETURN]);
    assert_eq!([old(30), old(-0x10_0000 + 16), old(97)], [0x0a00_0002, 0x0a00_0002, 0]);
}

#[test]
fn what_is_written_is_in_the_packet() {
    // The ToS, with the header's checksum and without.
    let store = |fix: bool| {
        let mut code = vec![
            (0xbf, 6, 1, 0, 0),
            (0x72, 10, 0, -1, 0xb8),
            (0xb7, 2, 0, 0, 15),
            (0xbf, 3, 10, 0, 0),
            (0x07, 3, 0, 0, -1),
            (0xb7, 4, 0, 0, 1),
            (0xb7, 5, 0, 0, 0),
            (0x85, 0, 0, 0, 9),
        ];
        if fix {
            code.extend([
                (0xbf, 1, 6, 0, 0),
                (0xb7, 2, 0, 0, 24),
                (0xb7, 3, 0, 0, 0x0045),
                (0xb7, 4, 0, 0, 0xb845),
                (0xb7, 5, 0, 0, 2),
                (0x85, 0, 0, 0, 10),
            ]);
        }
        code.extend([(0xb7, 0, 0, 0, 0), RETURN]);
        let mut skb = packet(0, 100);
        run_on(&load(&code, Vec::new()).unwrap(), &mut skb);
        (skb.tos(), skb.tc.bad_checksum, skb.tc.damaged)
    };
    assert_eq!((store(true), store(false)), ((0xb8, false, false), (0xb8, true, false)));
    // The destination port without the checksum over it.
    let mut skb = packet(0, 100);
    let port = [
        (0x72, 10, 0, -1, 9),
        (0xb7, 2, 0, 0, 37),
        (0xbf, 3, 10, 0, 0),
        (0x07, 3, 0, 0, -1),
        (0xb7, 4, 0, 0, 1),
        (0xb7, 5, 0, 0, 0),
        (0x85, 0, 0, 0, 9),
        RETURN,
    ];
    assert_eq!(run_on(&load(&port, Vec::new()).unwrap(), &mut skb), 0);
    assert_eq!((skb.tc.bad_checksum, skb.tc.damaged), (false, true));
}

/// `r0 = map_lookup_elem(map 0, &key)`, where the key is a word of zeros on the stack.
const LOOKUP: [(u8, u8, u8, i16, i32); 6] = [
    (0x62, 10, 0, -4, 0),
    (0xbf, 2, 10, 0, 0),
    (0x07, 2, 0, 0, -4),
    (0x18, 1, 1, 0, 0),
    (0x00, 0, 0, 0, 0),
    (0x85, 0, 0, 0, 1),
];

#[test]
fn a_map_remembers_from_packet_to_packet() {
    // `if (v = lookup) return ++*v`, atomically.
    let mut code = LOOKUP.to_vec();
    code.extend([(0x15, 0, 0, 3, 0), (0xb7, 1, 0, 0, 1), (0xdb, 0, 1, 0, 1), (0xbf, 0, 1, 0, 0), RETURN]);
    let program = load(&code, vec![map(2, 4, 8, 1)]).unwrap();
    let mut skb = packet(0, 100);
    assert_eq!([0; 3].map(|_| run_on(&program, &mut skb)), [0, 1, 2]);
    // Beyond the value.
    let mut far = LOOKUP.to_vec();
    far.extend([(0x15, 0, 0, 1, 0), (0x61, 0, 0, 8, 0), RETURN]);
    let why = load(&far, vec![map(2, 4, 8, 1)]).map(drop).unwrap_err();
    assert_eq!(why.log, "invalid access to map value");
    // Without looking whether there is one.
    let mut bare = LOOKUP.to_vec();
    bare.extend([(0x61, 0, 0, 0, 0), RETURN]);
    assert_eq!(load(&bare, vec![map(1, 4, 8, 1)]).map(drop).unwrap_err().log, "invalid mem access 'scalar'");
}

#[test]
fn functions_call_one_another_and_loops_end() {
    // r6 survives a call; the function's frame is its own.
    let code = [
        (0xb7, 6, 0, 0, 5),
        (0x7a, 10, 0, -8, 7),
        (0x85, 0, 1, 0, 4),
        (0x79, 1, 10, -8, 0),
        (0x0f, 0, 6, 0, 0),
        (0x0f, 0, 1, 0, 0),
        RETURN,
        (0x7a, 10, 0, -8, 100),
        (0xb7, 6, 0, 0, 1),
        (0x79, 0, 10, -8, 0),
        RETURN,
    ];
    assert_eq!(answer(&code), 112);
    let endless = [(0xb7, 0, 0, 0, 0), (0x05, 0, 0, -1, 0), RETURN];
    let why = load(&endless, Vec::new()).map(drop).unwrap_err();
    assert_eq!(why.log, "unreachable insn 2");
    let long = [(0xb7, 0, 0, 0, 0), (0x07, 0, 0, 0, 1), (0x55, 0, 0, -2, 0), RETURN];
    assert_eq!(load(&long, Vec::new()).map(drop).unwrap_err().errno, KernelError::E2BIG);
}

#[test]
fn a_program_that_calls_itself_does_so_33_times() {
    // Counts its turns in `cb[0]`, which stay.
    let code = [
        (0xbf, 6, 1, 0, 0),
        (0x61, 7, 1, 48, 0),
        (0x07, 7, 0, 0, 1),
        (0x63, 1, 7, 48, 0),
        (0x18, 2, 1, 0, 0),
        (0x00, 0, 0, 0, 0),
        (0xb7, 3, 0, 0, 1),
        (0x85, 0, 0, 0, 12),
        (0xbf, 0, 7, 0, 0),
        RETURN,
    ];
    let own = |slots| map(3, 4, 4, 2).with("programs", Value::List(slots));
    let turns = |slots| run_on(&load(&code, vec![own(slots)]).unwrap(), &mut packet(0, 100));
    assert_eq!(turns(vec![Options::new().with("index", 1u32)]), 34);
    assert_eq!(turns(Vec::new()), 1, "nothing there: on with the next instruction");
}

#[test]
fn helpers_that_are_not_here_are_named() {
    let code = [(0xb7, 2, 0, 0, 0), (0xb7, 3, 0, 0, 0), (0xb7, 4, 0, 0, 0), (0x85, 0, 0, 0, 69), RETURN];
    assert_eq!(load(&code, Vec::new()).unwrap().missing(), Some("bpf with the helper fib_lookup"));
    assert_eq!(
        load(&[(0xb7, 0, 0, 0, 0), RETURN], vec![map(27, 0, 0, 4096)]).unwrap().missing(),
        Some("bpf with a ring buffer")
    );
}

#[test]
fn wrong_only_now_and_then() {
    // Reads beyond the packet where its mark is 7.
    let code = [
        (0xb7, 0, 0, 0, 1),
        (0x61, 3, 1, 8, 0),
        (0x55, 3, 0, 2, 7),
        (0x61, 2, 1, 80, 0),
        (0x71, 0, 2, 0, 0),
        RETURN,
    ];
    let program = load(&code, Vec::new()).unwrap();
    let mut skb = packet(0, 100);
    assert_eq!((run_on(&program, &mut skb), program.missing()), (1, None));
    skb.mark = 7;
    assert_eq!((run_on(&program, &mut skb), program.missing()), (0, Some(FAULT)));
}

#[test]
fn time_marks_and_tags() {
    // `tstamp = ktime_get_ns() + 1000; skb_ecn_set_ce; skb_vlan_push(0x8100, 5)`.
    let code = [
        (0xbf, 6, 1, 0, 0),
        (0x85, 0, 0, 0, 5),
        (0x07, 0, 0, 0, 1000),
        (0x7b, 6, 0, 152, 0),
        (0xbf, 1, 6, 0, 0),
        (0x85, 0, 0, 0, 97),
        (0xbf, 7, 0, 0, 0),
        (0xbf, 1, 6, 0, 0),
        (0xb7, 2, 0, 0, 0x0081),
        (0xb7, 3, 0, 0, 5),
        (0x85, 0, 0, 0, 18),
        (0xbf, 0, 7, 0, 0),
        RETURN,
    ];
    let program = load(&code, Vec::new()).unwrap();
    let mut skb = packet(0, 100);
    if let L3::Ipv4(h) = &mut skb.l3 {
        h.tos = 2;
    }
    assert_eq!(run_on(&program, &mut skb), 1);
    assert_eq!(
        (skb.sender.departs, skb.tos(), skb.rare().vlan),
        (Time::from_ns(6_000), 3, Some((0x8100, 5)))
    );
    assert!(!skb.tc.bad_checksum && !skb.tc.damaged);
}

/// The program of an object beside the tests of `tc`.
fn object_of(name: &str) -> Program {
    let path = format!("{}/../penstock-host/tests/objects/{name}", env!("CARGO_MANIFEST_DIR"));
    let section = "classifier".to_owned();
    let wanted = penstock_lang::tc::object::Wanted { path: name.to_owned(), section, program: None };
    let loaded = penstock_lang::tc::object::load(&std::fs::read(path).unwrap(), &wanted).unwrap();
    Program::load(&Options::new().with("object", loaded), Kernel::V6_12).unwrap()
}

/// As linux 6.18.44 answered to the same frame (`BPF_PROG_TEST_RUN`): both checksums hold afterwards.
#[test]
fn addresses_are_translated_with_their_checksums() {
    use penstock_packet::headers::{Ipv4, Tcp, ipproto};
    use penstock_packet::{L4, Skb};
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let l3 = L3::Ipv4(Ipv4 { src, dst, tos: 0, ttl: 64, protocol: ipproto::TCP, id: 1, frag_off: 0x4000 });
    let mut skb = Skb::new(74, l3, L4::Tcp(Tcp { sport: 1000, dport: 80, ..Tcp::default() }));
    assert_eq!(run_on(&object_of("nat.o"), &mut skb), 64);
    let L3::Ipv4(h) = skb.l3 else { panic!("{:?}", skb.l3) };
    assert_eq!((h.dst.octets(), skb.tc.bad_checksum, skb.tc.damaged), ([10, 0, 0, 9], false, false));
    assert!(matches!(skb.l4, L4::Tcp(t) if t.dport == 8080), "{:?}", skb.l4);
}

/// As linux 6.18.44 answered: TCP to the ports 80, 81, UDP to 53; and the fourth of four.
#[test]
fn verdicts_are_the_kernel_s() {
    use penstock_packet::headers::{Ipv4, Tcp, ipproto};
    use penstock_packet::{L4, Skb};
    let tcp = |dport| {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let l3 = L3::Ipv4(Ipv4 { src, dst, tos: 0xb8, ttl: 64, protocol: ipproto::TCP, id: 1, frag_off: 0 });
        Skb::new(54, l3, L4::Tcp(Tcp { sport: 1000, dport, ..Tcp::default() }))
    };
    let port = object_of("port.o");
    assert_eq!([80, 81].map(|dport| run_on(&port, &mut tcp(dport))), [65552, 65568]);
    assert_eq!(run_on(&port, &mut packet(0, 100)), 0);
    let count = object_of("count.o");
    assert_eq!([0; 5].map(|_| run_on(&count, &mut tcp(80))), [0, 0, 0, 2, 0]);
    let mut marked = tcp(80);
    assert_eq!((run_on(&object_of("dscp.o"), &mut marked), marked.mark), (0, 46));
}
