//! The tables of an experiment file: each key with what it means, its kind, its default. What the readers make of them is in the files beside.

use super::form::{Form, Key, Kind, key};
use super::spec::{Ecn, Framing, Os};
use super::sweep::DESIGNS;
use super::test::{CALLS, TESTS};
use penstock_model::{ClockSource, OldClock};

use Kind::{
    Any, Chance, CodePoint, End, Few, Figure, File, Flag, Kernel, List, Named, Number, Prefix, Rate, Share,
    Size, Table, Text, Time, Whole, Words,
};

const fn form(name: &'static str, about: &'static str, keys: &'static [Key]) -> Form {
    Form { name, about, keys, others: None }
}

/// `each` of a table that stands for many.
const EACH: Key = key(
    "each",
    Any(&[Whole(1, 100_000), Text]),
    "A number of copies, or a range: the table stands for so many",
)
.example("\"1..50\"");

/// A whole number of 32 bits.
const U32: Kind = Whole(0, u32::MAX as u64);

/// A random length of time.
const DIST: Kind = Any(&[Time, List(&Time), Table(&TIMES)]);
/// A random number of bytes.
const SIZES: Kind = Any(&[Size, List(&Size), Table(&BYTES)]);

pub(super) static EXPERIMENT: Form = form(
    "experiment",
    "An experiment: machines, links, traffic, and what is expected",
    &[
        key(
            "base",
            Text,
            "Another experiment file to start from: its hosts, links, apps and flows, not its expectations",
        )
        .example("\"line.toml\""),
        key("title", Text, "Heading of the summary and the report")
            .otherwise("the file's name")
            .example("\"Three users\""),
        key("about", Text, "What the experiment shows; printed in the report"),
        key("duration", Time, "Length of the run, more than 0, at most 86400 s").default("\"10s\""),
        key("warmup", Time, "How long statistics ignore traffic at the start")
            .default("\"0s\"")
            .example("\"20s\""),
        key("seed", Whole(0, i64::MAX as u64 - 1), "The seed of all randomness").default("1"),
        key("sample", Time, "Time between two samples of the series, 100 us or more")
            .otherwise("a round number that gives 100 to 250 samples")
            .example("\"50ms\""),
        key("kernel", Kernel, "Profile of hosts that name none").default("\"6.12\""),
        key("offloads", Flag, "Super-packets (TSO): one packet stands for several segments").default("false"),
        key("setup_may_fail", Flag, "Go on when a command of a setup fails; the record lists the failures")
            .default("false"),
        key("host", Named(&HOST), "The machines, each under its name"),
        key("switch", Named(&SWITCH), "The switches, each under its name"),
        key("link", List(&Table(&LINK)), "The links between devices"),
        key("app", List(&Table(&APP)), "Programs, as typed"),
        key("flow", List(&Table(&FLOW)), "Traffic without a program"),
        key("test", List(&Table(&TEST)), "The load of one of flent's tests"),
        key("meter", List(&Table(&METER)), "Traffic conditioners in front of devices"),
        key("capture", List(&Table(&CAPTURE)), "Frames of cards that are kept as pcapng"),
        key("expect", List(&Table(&EXPECT)), "What the run must measure"),
        key("sweep", Table(&SWEEP), "What penstock sweep varies").example("{ set = { seed = [1, 2] } }"),
    ],
);

/// What stands behind the name of a device.
const CARD: Kind = Any(&[Few(&Prefix), Table(&DEVICE)]);

pub(super) static HOST: Form = Form {
    name: "host",
    about: "A machine. Any other key is a device with its addresses",
    keys: &[
        key(
            "device",
            Any(&[Few(&Prefix), Table(&CARDS)]),
            "Devices whose names are keys of this table, or hold an @",
        ),
        key("via", Few(&Kind::Address), "Default gateway, or one of each family; in the network of a device")
            .example("\"10.0.0.254\""),
        key("kernel", Kernel, "Its kernel profile").otherwise("that of the top"),
        key("clock", Words(clocks), "With kernel 2.2 and 2.4: what the packet scheduler reads")
            .default("\"jiffies\""),
        key(
            "hz",
            Whole(*OldClock::HZ.start() as u64, *OldClock::HZ.end() as u64),
            "With kernel 2.2 and 2.4: timer interrupts per second",
        )
        .default("100"),
        key(
            "mhz",
            Whole(*OldClock::MHZ.start() as u64, *OldClock::MHZ.end() as u64),
            "With kernel 2.2 and 2.4: the processor's clock, for clock = \"cpu\"",
        )
        .default("550"),
        key(
            "setup",
            Few(&Text),
            "A shell script that runs before the traffic: one text, or a list; @FILE is a file's lines",
        )
        .example("[\"sysctl -w net.ipv4.ip_forward=1\", \"@shaper.sh\"]"),
        key("env", Table(&VARIABLES), "Exported variables of the setup").example("{ RATE = \"5mbit\" }"),
        key("setup_may_fail", Flag, "Go on when a command of this host's setup fails")
            .otherwise("that of the top"),
        key("os", Words(systems), "Whose TCP it has").default("\"linux\""),
        key("iperf", Words(iperfs), "Which iperf 2 it has on the ground sim").default("\"2.0\""),
        key("cisco", Text, "A file with the configuration of an IOS router; then neither devices nor setup")
            .example("\"@R1.cfg\""),
        key("cost", Any(&[Time, List(&Time), Table(&COST)]), "What its processor spends on each packet")
            .otherwise("nothing")
            .example("\"20us\""),
        key("ahead", Time, "By how much its clock is ahead of the run's").default("\"0s\""),
        key("processor", Text, "Hosts that give the same name are virtual machines on one processor")
            .example("\"esxi\""),
        key("files", Table(&FILES), "Files for copies: name and size").example("{ \"video.wmv\" = \"30m\" }"),
    ],
    others: Some(&CARD),
};

/// All switches: each under its name.
pub(super) static SWITCHES: Form = Form {
    name: "switches",
    about: "The switches, each under its name",
    keys: &[],
    others: Some(&Table(&SWITCH)),
};

pub(super) static CARDS: Form =
    Form { name: "devices", about: "Devices by exactly these names", keys: &[], others: Some(&CARD) };

pub(super) static VARIABLES: Form =
    Form { name: "env", about: "Variables of the setup", keys: &[], others: Some(&Kind::Variable) };

pub(super) static FILES: Form =
    Form { name: "files", about: "Files and their sizes", keys: &[], others: Some(&Size) };

pub(super) static DEVICE: Form = form(
    "device",
    "A device",
    &[
        key("address", Few(&Prefix), "Its addresses").example("[\"10.0.0.1/24\", \"2001:db8::1/64\"]"),
        key("mtu", Whole(68, 65_535), "Its MTU, bytes").default("1500"),
        key("txqueuelen", Whole(0, u32::MAX as u64 - 1), "Its txqueuelen, packets")
            .otherwise("the profile's, 1000"),
        key("capture", Flag, "Keep its frames in a file").default("false"),
    ],
);

pub(super) static TIMES: Form = form(
    "times",
    "A distribution of times: uniform with from and to; exponential with mean; Pareto with mean and shape; normal with mean and deviation",
    &[
        key("from", Time, "The shortest").example("\"10us\""),
        key("to", Time, "The longest").example("\"30us\""),
        key("mean", Time, "The mean").example("\"20us\""),
        key("shape", Number, "Of a Pareto distribution, 1.01 to 100").example("1.5"),
        key("most", Time, "With shape: longer times are cut to this").example("\"1ms\""),
        key("deviation", Time, "The standard deviation of a normal distribution").example("\"5us\""),
    ],
);

pub(super) static BYTES: Form = form(
    "sizes",
    "A distribution of sizes: uniform with from and to; exponential with mean; Pareto with mean and shape; normal with mean and deviation",
    &[
        key("from", Size, "The smallest").example("64"),
        key("to", Size, "The largest").example("1200"),
        key("mean", Size, "The mean").example("500"),
        key("shape", Number, "Of a Pareto distribution, 1.01 to 100").example("1.5"),
        key("most", Size, "With shape: larger sizes are cut to this").example("1472"),
        key("deviation", Size, "The standard deviation of a normal distribution").example("100"),
    ],
);

pub(super) static COST: Form = form(
    "cost",
    "What a processor spends",
    &[
        key("packet", DIST, "For each packet").default("\"0s\"").example("\"20us\""),
        key("spread", Time, "Makes packet uniformly random, up to this much shorter or longer")
            .default("\"0s\""),
        key("byte", Kind::ByteTime, "In addition for each byte, in us, ns or ps").example("\"0.8ns\""),
        key("send", Time, "For each call of a program that sends a datagram").default("\"0s\""),
        key("tick", Time, "For each timer interrupt").default("\"0s\"").example("\"11.9us\""),
        key("classify", Time, "For each step of classification").default("\"0s\"").example("\"0.4us\""),
        key("clock", Time, "For each reading of the packet scheduler's clock")
            .default("\"0s\"")
            .example("\"50ns\""),
        key("thread", DIST, "Until another thread of a program runs").default("\"0s\"").example("\"3ms\""),
        key("qdisc", Time, "For each packet in addition, once a qdisc was set up")
            .default("\"0s\"")
            .example("\"30us\""),
        key("pause", Few(&Table(&PAUSE)), "When another task has the processor and for how long")
            .example("{ at = \"5s\", lasts = \"50ms\" }"),
    ],
);

pub(super) static PAUSE: Form = form(
    "pause",
    "Another task has the processor",
    &[key("at", Time, "When it begins").needed(), key("lasts", Time, "How long it lasts").needed()],
);

pub(super) static SWITCH: Form = form(
    "switch",
    "A switch",
    &[
        key("ports", Few(&PORT), "What is plugged in, each into a port of its own: p1, p2 …")
            .example("[\"a:eth0\", \"b:eth0\"]"),
        key("rate", Rate, "The rate of each port's cable").example("\"1gbit\""),
        key("delay", Time, "Propagation delay of each port's cable, one way").default("\"0s\""),
        key("loss", Chance, "Probability that a frame is lost on a port's cable").default("\"0%\""),
        key(
            "limit",
            Any(&[Whole(1, 1_000_000), Kind::SizeText]),
            "What each port's queue holds: packets, or bytes as text",
        )
        .default("100"),
        key("qdisc", Text, "In place of limit: words of tc for each port's queue").example("\"fq_codel\""),
        key("ageing", Time, "How long a station is remembered").default("\"300s\""),
        key("setup", Few(&Text), "A script that runs on the switch once its ports are there"),
    ],
);

/// An end, alone or with values of its own.
const PORT: Kind = Any(&[End, Table(&END)]);

pub(super) static LINK: Form = form(
    "link",
    "A link between devices",
    &[
        key("ends", Few(&PORT), "Two ends; more share one medium")
            .needed()
            .example("[\"a:eth0\", \"b:eth0\"]"),
        key("rate", LINK_RATE, "Rate of each direction, or of the shared medium; 8bit or more")
            .otherwise("none")
            .example("\"100mbit\""),
        key("delay", LINK_DELAY, "Propagation delay, one way").default("\"0s\"").example("\"10ms\""),
        key("loss", LINK_LOSS, "Probability that a frame is lost").default("\"0%\"").example("\"0.1%\""),
        key("down", Few(&Table(&DOWN)), "When nothing gets through, in the order of time")
            .otherwise("never")
            .example("[{ from = \"3s\", to = \"4s\" }]"),
        key("framing", Words(framings), "What takes time on the wire").default("\"ethernet\""),
        key("duplex", Words(|| vec!["full", "half"]), "Whether both ends send at a time")
            .otherwise("\"full\"; \"half\" with more than two ends"),
        key("ecn", Words(ecns), "What happens to the ECN field on the path").default("\"pass\""),
        key("queue", Table(&QUEUE), "The queue before the link, for a router that does not run Linux")
            .example("{ kind = \"ns2_droptail\", limit = 72 }")
            .otherwise("that of the device"),
        key("name", Text, "A name, for sweeps and reports").example("\"uplink\""),
        EACH,
    ],
);

pub(super) static END: Form = form(
    "end",
    "An end of a link, with values for what it sends in place of the link's",
    &[
        key("end", End, "The end").needed().example("\"b:eth0\""),
        key("rate", LINK_RATE, "Rate of what it sends").otherwise("the link's").example("\"4mbit\""),
        key("delay", LINK_DELAY, "Propagation delay of what it sends").otherwise("the link's"),
        key("loss", LINK_LOSS, "Probability that a frame of its is lost").otherwise("the link's"),
        key("down", Few(&Table(&DOWN)), "When nothing of its gets through").otherwise("the link's"),
        key("ecn", Words(ecns), "What happens to the ECN field of what it sends").otherwise("the link's"),
        key("queue", Table(&QUEUE), "The queue before the link")
            .example("{ kind = \"ns2_droptail\", limit = 72 }")
            .otherwise("the link's"),
        key("capture", Flag, "Keep the frames of this end's card in a file").default("false"),
        key("ring", Whole(0, 65_535), "Frames the card takes ahead of the one on the wire").default("0"),
        key("tx_queues", Whole(1, 4096), "Transmit queues of the card").default("1"),
        key(
            "tx_frames",
            Whole(1, 65_535),
            "With a ring: the card reports sent frames in batches of this many",
        )
        .default("1"),
        key("bql", Flag, "With a ring: byte queue limits").default("false"),
    ],
);

pub(super) static DOWN: Form = form(
    "down",
    "A time in which nothing gets through",
    &[key("from", Time, "From when").needed(), key("to", Time, "Until when").needed()],
);

/// A quantity of a link that may change: its kind, a step of a list, the functions of time.
macro_rules! changing {
    ($kind:ident, $step:ident, $change:ident, $of:expr, $names:expr, $what:literal, [$($more:expr),*]) => {
        const $kind: Kind = Any(&[$of, List(&Table(&$step)), Table(&$change)]);
        pub(super) static $step: Form = form(
            $names[0],
            concat!("From a time on, this ", $what),
            &[key("at", Time, "From when; the first is 0s").needed(), key("value", $of, concat!("The ", $what)).needed()],
        );
        pub(super) static $change: Form = form(
            $names[1],
            concat!("A function of time: ramp, sine or steps of the ", $what),
            &[
                key("ramp", List(&$of), "From one value to the other, straight"),
                key("from", Time, "When the ramp begins").default("\"0s\""),
                key("to", Time, "When the ramp ends").otherwise("the run's end"),
                key("sine", List(&$of), "Between two values, beginning in the middle and rising"),
                key("period", Time, "The length of a sine").example("\"10s\""),
                key("steps", Few(&$of), "Values one after another, again and again"),
                key("every", Time, "How long each of the steps lasts; of a ramp and a sine, how long each of theirs")
                    .otherwise("a hundredth of the ramp or the sine, 1 ms or more"),
                $($more),*
            ],
        );
    };
}
changing!(
    LINK_RATE,
    RATE_STEP,
    RATE_CHANGE,
    Rate,
    ["rate_step", "rate_change"],
    "rate",
    [key("trace", File, "A trace of Mahimahi's: each line a millisecond at which 1500 bytes can leave")
        .example("\"@lte.down\"")]
);
changing!(LINK_DELAY, DELAY_STEP, DELAY_CHANGE, Time, ["delay_step", "delay_change"], "delay", []);
changing!(LINK_LOSS, LOSS_STEP, LOSS_CHANGE, Chance, ["loss_step", "loss_change"], "loss", []);

pub(super) static QUEUE: Form = form(
    "queue",
    "A queue of ns-2's before a link; which words each kind has stands in docs/kinds/ns2.md",
    &[
        key("kind", Words(queues), "The kind of queue").needed(),
        key("limit", U32, "Packets; with queue_in_bytes so many of mean_pktsize").default("50"),
        key("queue_in_bytes", Flag, "The limit, and thresholds, count bytes")
            .otherwise("false of ns2_droptail, true of ns2_red"),
        key("mean_pktsize", U32, "Bytes of a packet").default("500"),
        key("idle_pktsize", U32, "Bytes of a packet while the queue is idle, with cautious = 3")
            .default("100"),
        key("drop_front", Flag, "A full queue drops its first packet, not the newest").default("false"),
        key("drop_rand", Flag, "A full queue drops any packet, not the newest").default("false"),
        key(
            "thresh",
            Share,
            "Threshold of the average above which chance drops: packets, or percent of limit",
        ),
        key(
            "maxthresh",
            Share,
            "Threshold of the average at which the probability is 1 / linterm: packets, or percent of limit",
        ),
        key("q_weight", Figure, "Weight of the newest length in the average")
            .otherwise("after the link's rate; 0.002 of fred"),
        key("linterm", Figure, "Inverse of the probability at maxthresh").otherwise("10; 50 of fred"),
        key("gentle", Flag, "From maxthresh to twice that the probability rises to 1").default("true"),
        key("bytes", Flag, "The probability grows with a packet's length").default("true"),
        key("wait", Flag, "Drops keep a distance of 1/p packets").default("true"),
        key("setbit", Flag, "Packets of senders that understand ECN are marked instead").default("false"),
        key("use_mark_p", Flag, "Over mark_p they are dropped all the same").default("true"),
        key("mark_p", Figure, "The probability over which they are").default("0.1"),
        key("adaptive", Flag, "linterm is adapted so that the average stays between the thresholds")
            .default("false"),
        key("feng_adaptive", Flag, "With adaptive: Feng's rule").default("false"),
        key("alpha", Figure, "Step up of adaptive").default("0.01"),
        key("beta", Figure, "Step down of adaptive").default("0.9"),
        key("interval", Time, "Distance of the steps of adaptive").default("\"500ms\""),
        key("targetdelay", Time, "For automatic thresholds").default("\"5ms\""),
        key("top", Figure, "Upper bound of adaptive").default("0.5"),
        key("bottom", Figure, "Lower bound of adaptive; 0: after the link's rate").default("0"),
        key(
            "cautious",
            U32,
            "1, 2: less is dropped where the queue is well below its average; 3: see idle_pktsize",
        )
        .default("0"),
        key("ns1_compat", Flag, "A forced drop does not restart the count of packets").default("false"),
        key("minq", U32, "Of fred: packets that each flow may hold").default("2"),
        key("target_rtt", Time, "Of red_pd: the round trip by which too much is judged").default("\"40ms\""),
        key("unresponsive_test", Flag, "Of red_pd: flows that do not respond are looked for").default("true"),
        key("unresponsive_penalty", Figure, "Of red_pd: by what their probability is multiplied")
            .default("1"),
        key("noidle", Flag, "Of red_pd: nothing of theirs is filtered when the queue is empty")
            .default("false"),
    ],
);

pub(super) static APP: Form = form(
    "app",
    "A program, as typed",
    &[
        key("on", Text, "The host").needed().example("\"a\""),
        key("run", Text, "A program or a shell script; @FILE is a script's file")
            .needed()
            .example("\"iperf -c 10.0.0.2 -t 10 -i 1\""),
        key("name", Text, "Its name, for expectations and reports")
            .otherwise("host and program")
            .example("\"upload\""),
        key(
            "at",
            Few(&Time),
            "When it starts; a list starts it several times. With after: this long after the other app's end",
        )
        .default("\"0s\""),
        key("may_fail", Flag, "An exit status other than 0 does not make the run a failed one")
            .default("false"),
        key("after", Text, "Name of the app it waits for").example("\"a iperf\""),
        EACH,
    ],
);

pub(super) static FLOW: Form = form(
    "flow",
    "Traffic without a program",
    &[
        key("from", Text, "The host that sends").needed().example("\"a\""),
        key("to", Text, "The host that receives").needed().example("\"b\""),
        key("load", Any(&[Words(loads), Rate, Table(&LOAD)]), "What it sends").needed().example("\"greedy\""),
        key("name", Text, "Its name").otherwise("FROM-TO").example("\"call\""),
        key("group", Text, "Flows of a group are also counted together").example("\"web\""),
        key("count", Whole(1, 50_000), "How many identical flows").default("1"),
        key("tcp", Any(&[Kind::Yes, Table(&TCP)]), "TCP: true, or its keys")
            .otherwise("TCP as the sender's profile has it")
            .example("{ cc = \"reno\" }"),
        key("udp", Flag, "true: datagrams").default("false"),
        key("at", Any(&[Time, Table(&TIMES)]), "Start; { from, to } is a random time between")
            .default("\"0s\""),
        key("until", Time, "When it stops").otherwise("when all is sent, or with the run").example("\"8s\""),
        key("tos", Whole(0, 255), "ToS byte").default("0"),
        key("mark", U32, "Firewall mark").default("0"),
        key("port", Whole(1, 65_535), "Destination port").otherwise("any free").example("5001"),
        key("drift", Whole(0, 100_000), "Maximum error of its clock in parts per million").default("0"),
        key("dscp", CodePoint, "In place of tos: the code point").example("\"EF\""),
        key("jitter", Time, "Maximum error of each packet's departure, early or late").default("\"0s\""),
        key("ipv6", Flag, "Over IPv6 although the receiver has an IPv4 address").default("false"),
        key("trace", Flag, "For datagrams: record when each was sent and when it arrived").default("false"),
        key(
            "txtime",
            Any(&[Kind::TimeText, Table(&TXTIME)]),
            "For datagrams: each asks to leave this long after it is written (SO_TXTIME)",
        )
        .example("\"5ms\""),
        EACH,
    ],
);

pub(super) static LOAD: Form = form(
    "load",
    "What a flow sends; docs/experiment-file.md lists the forms",
    &[
        key("bytes", Size, "This many bytes over TCP; with arrivals: each connection's").example("\"10m\""),
        key("rate", Rate, "A steady stream of payload").example("\"64kbit\""),
        key("size", SIZES, "Bytes of each packet").example("160"),
        key("gap", DIST, "Time between two packets").example("\"20ms\""),
        key("on", DIST, "How long it sends at a time").example("\"1s\""),
        key("off", DIST, "How long it pauses in between").example("\"1s\""),
        key("echo", DIST, "Datagrams that the receiver sends back: the time between two").example("\"1s\""),
        key("frames", Whole(1, 10_000_000), "Frames a second, as a hardware generator has them")
            .example("14568"),
        key("frame", Words(|| vec!["ethernet", "fcs", "ip", "pos"]), "With frames: what size counts")
            .default("\"ethernet\""),
        key("pages", SIZES, "Web pages, each over a connection of its own: their sizes").example("\"12k\""),
        key("think", DIST, "With pages: the pause after each").default("\"0s\"").example("\"1s\""),
        key("arrivals", Time, "Connections that arrive as a Poisson process: the mean gap")
            .example("\"100ms\""),
        key(
            "shape",
            Number,
            "With arrivals: bytes is the mean of a Pareto distribution of this shape, more than 1",
        )
        .example("1.2"),
        key("replay", File, "A recording: lines of seconds and payload bytes, or a capture")
            .example("\"@call.csv\""),
    ],
);

pub(super) static TCP: Form = form(
    "tcp",
    "The TCP of a flow",
    &[
        key("cc", Words(controls), "Congestion control; of profile ns-2 the agent").otherwise("the host's"),
        key("ecn", Flag, "Asks for ECN (RFC 3168)").otherwise("off, agreed to when asked"),
        key("sack", Flag, "Selective acknowledgements (RFC 2018)").otherwise("the host's"),
        key("fastopen", Flag, "Fast Open at both ends (RFC 7413), as net.ipv4.tcp_fastopen lets them")
            .default("false"),
        key("quickack", Flag, "Every segment is acknowledged at once").default("false"),
        key("mss", Whole(48, 65_495), "Segment size, bytes").otherwise("the host's"),
        key("sndbuf", Size, "Send buffer, 256 to 1g").otherwise("tuned"),
        key("rcvbuf", Size, "Receive buffer, 256 to 1g").otherwise("tuned"),
        key("initial_window", Whole(1, 999), "Segments of the first window").otherwise("the profile's"),
        key("min_rto", Time, "Minimum retransmission timeout, 1ms to 60s")
            .otherwise("the profile's, 200 ms of Linux"),
        key("hz", Whole(10, 10_000), "Timer interrupts per second: the unit of timeouts and delayed ACKs")
            .otherwise("250"),
        key(
            "profile",
            Words(|| vec!["linux", "ns-2", "ns-2.27"]),
            "Whose TCP: Linux's, or ns-2's one-way agents",
        )
        .default("\"linux\""),
        key("window", Whole(1, (1 << 20) - 1), "Of ns-2: the window, packets").default("20"),
        key("tick", Time, "Of ns-2: the unit of timeouts").default("\"10ms\""),
        key("initial_rto", Time, "Of ns-2: timeout before the first sample").default("\"3s\""),
        key("max_rto", Time, "Of ns-2: longest timeout").default("\"60s\""),
        key("delayed_ack", Time, "Of ns-2: every second packet is acknowledged, or after this time")
            .otherwise("each packet is acknowledged"),
        key("limited_transmit", Flag, "Of ns-2: limited transmit (RFC 3042)").default("true"),
        key("impatient", Flag, "Of ns-2: the impatient variant of NewReno").default("true"),
    ],
);

pub(super) static TXTIME: Form = form(
    "txtime",
    "When a datagram asks to leave",
    &[
        key("after", Time, "This long after it is written").needed().example("\"5ms\""),
        key("clock", Words(|| vec!["tai", "monotonic"]), "The clock of that time").default("\"tai\""),
        key("deadline", Flag, "It is the latest time").default("false"),
    ],
);

pub(super) static TEST: Form = form(
    "test",
    "The load of one of flent's tests",
    &[
        key("run", Words(tests), "The name of the test").needed().example("\"rrul\""),
        key("from", Text, "Where flent runs").needed().example("\"pc\""),
        key("to", Few(&Text), "The server, or a list of as many as the test wants")
            .needed()
            .example("\"server\""),
        key("length", Time, "How long the streams send")
            .otherwise("what is left of the run after twice delay")
            .example("\"60s\""),
        key("delay", Time, "How long before and after the streams there are pings alone")
            .otherwise("5s, at most a tenth of the run"),
        key("at", Time, "When the test begins").default("\"0s\""),
        key(
            "streams",
            Whole(1, 1000),
            "Of tcp_nup, tcp_ndown, rrul_be_nflows and rrul_var: how many in each direction",
        )
        .default("1"),
        key("cc", Text, "Congestion control of streams that the test gives none")
            .otherwise("the profile's")
            .example("\"bbr\""),
        key("rate", Rate, "Of udp_flood").default("\"100mbit\""),
        key("dscp", CodePoint, "Code point of all that it sends").otherwise("the test's").example("\"EF\""),
        key("name", Text, "Stands before the names of its flows").example("\"before\""),
        EACH,
    ],
);

/// What becomes of a colour.
const MARK: Kind = Any(&[Words(|| vec!["keep", "drop"]), CodePoint]);

pub(super) static METER: Form = form(
    "meter",
    "A traffic conditioner (RFC 2475) in front of a device",
    &[
        key("on", End, "Machine and device").needed().example("\"r1:eth1\""),
        key("kind", Words(|| super::meter::KINDS.to_vec()), "The meter: RFC 2697, RFC 2698, RFC 2859")
            .needed()
            .example("\"srtcm\""),
        key("dscp", Few(&CodePoint), "The code points it meters")
            .otherwise("every IP packet")
            .example("[\"AF11\", \"AF12\"]"),
        key("aware", Flag, "Use the colour a packet arrives with").default("false"),
        key("green", MARK, "What happens to green packets: a code point, keep or drop").default("\"keep\""),
        key("yellow", MARK, "What happens to yellow packets").default("\"keep\""),
        key("red", MARK, "What happens to red packets").default("\"keep\"").example("\"drop\""),
        key("cir", Rate, "Committed rate, of IP packets").example("\"1mbit\""),
        key("pir", Rate, "Of trtcm and tsw: peak rate").example("\"2mbit\""),
        key("cbs", Size, "Of srtcm and trtcm: committed burst").example("\"10k\""),
        key("ebs", Size, "Of srtcm: excess burst").example("\"10k\""),
        key("pbs", Size, "Of trtcm: peak burst").example("\"20k\""),
        key("window", Time, "Of tsw: length of the window").example("\"1s\""),
        EACH,
    ],
);

pub(super) static CAPTURE: Form = form(
    "capture",
    "Frames of cards that are kept as pcapng",
    &[
        key("on", Few(&End), "A device at a link, or a list of them")
            .needed()
            .example("[\"r:lan\", \"r:wan\"]"),
        key("name", Text, "The name of the file").otherwise("that of the first device").example("\"shaper\""),
        key("snaplen", Whole(14, 65_549), "Bytes that are kept of each frame").default("160"),
        key("drops", Flag, "Packets that are lost at the device are kept too").default("true"),
        key("from", Time, "From when on").default("\"0s\""),
        key("until", Time, "Until when").otherwise("the run's end").example("\"5s\""),
        EACH,
    ],
);

pub(super) static EXPECT: Form = form(
    "expect",
    "What the run must measure",
    &[
        key("what", Text, "A subject and one of its figures").needed().example("\"u5 iperf throughput\""),
        key("value", Text, "a..b, <x, <=x, >x, >=x or x, in the figure's unit")
            .needed()
            .example("\"5.5mbit..6.2mbit\""),
        EACH,
    ],
);

pub(super) static SWEEP: Form = form(
    "sweep",
    "What penstock sweep varies",
    &[
        key("seeds", Whole(1, 1_000_000), "How many seeds every point is run with").default("1"),
        key("points", Whole(1, 1_000_000), "How many points the designs random and latin have").default("20"),
        key("design", Words(|| DESIGNS.to_vec()), "How points are chosen").default("\"grid\""),
        key("figures", Few(&Text), "What the table and the page show")
            .otherwise("the expectations' figures")
            .example("[\"call owd p99\"]"),
        key("pareto", List(&Text), "Two figures to find the best compromises between")
            .example("[\"bulk goodput\", \"call owd p99\"]"),
        key("set", Table(&SET), "Paths of keys and their values")
            .needed()
            .example("{ \"link.uplink.rate\" = [\"10mbit\", \"20mbit\"] }"),
    ],
);

pub(super) static SET: Form =
    Form { name: "set", about: "Paths of keys and their values", keys: &[], others: Some(&Kind::Anything) };

fn clocks() -> Vec<&'static str> {
    ClockSource::ALL.iter().map(|c| c.0).collect()
}
fn systems() -> Vec<&'static str> {
    Os::ALL.iter().map(|o| o.0).collect()
}
fn iperfs() -> Vec<&'static str> {
    super::host::IPERFS.iter().map(|i| i.0).collect()
}
fn framings() -> Vec<&'static str> {
    Framing::ALL.iter().map(|f| f.1).collect()
}
fn ecns() -> Vec<&'static str> {
    Ecn::ALL.iter().map(|e| e.0).collect()
}
fn queues() -> Vec<&'static str> {
    penstock_sched::ns2::KINDS.iter().map(|k| k.spec.id).collect()
}
fn loads() -> Vec<&'static str> {
    ["greedy"].into_iter().chain(super::load::PROFILES.iter().map(|p| p.0)).collect()
}
fn controls() -> Vec<&'static str> {
    let mut all = penstock_tcp::cc::names();
    all.extend(penstock_tcp::ns2::Variant::ALL.map(|v| v.0));
    all.sort_unstable();
    all.dedup();
    all
}
fn tests() -> Vec<&'static str> {
    TESTS.into_iter().chain(CALLS).collect()
}
