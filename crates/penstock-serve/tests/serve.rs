//! A server on loopback, asked by those it is for and by those it is not for, word by word.

use penstock_serve::{Page, Server, Settings, Stop};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// A server with a folder of its own; both end with it.
struct Served {
    folder: PathBuf,
    at: SocketAddr,
    token: String,
    stop: Stop,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    fn new(name: &str) -> Served {
        let folder = std::env::temp_dir().join(format!("penstock-serve-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("page")).unwrap();
        std::fs::write(folder.join("page/index.html"), "<html><head><title>the page</title></head></html>")
            .unwrap();
        std::fs::write(folder.join("page/main.js"), "1").unwrap();
        std::fs::write(folder.join("secret"), "secret").unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let page = Page::Folder(folder.join("page"));
        let settings = Settings { listen, folder: folder.join("runs"), page, names: Vec::new() };
        let server = Server::bind(settings).unwrap();
        let (link, stop) = (server.link(), server.stopper());
        let (at, token) = link.strip_prefix("http://").and_then(|l| l.split_once("/#token=")).unwrap();
        let (at, token) = (at.parse().unwrap(), token.to_owned());
        let thread = Some(std::thread::spawn(move || server.run()));
        Served { folder, at, token, stop, thread }
    }
    /// What comes back when these bytes are sent and the connection is then held open.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.write_all(bytes);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    }
    fn get(&self, path: &str) -> (u16, String) {
        let host = self.at;
        split(
            &self.raw(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes()),
        )
    }
    fn post(&self, path: &str, token: &str, body: &str) -> (u16, String) {
        let (host, length) = (self.at, body.len());
        split(&self.raw(
            format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
                 X-Penstock-Token: {token}\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        ))
    }
    /// The last line of an answer to a question, and how many lines of progress came before it.
    fn ask(&self, path: &str, question: &Value) -> (Value, usize) {
        let (code, body) = self.post(path, &self.token, &question.to_string());
        assert_eq!(code, 200, "{body}");
        let lines: Vec<Value> = body
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect();
        (lines.last().unwrap().clone(), lines.len() - 1)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.stop();
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The status of an answer, and its head and body (of one that comes in chunks, the lines between their sizes).
fn split(said: &str) -> (u16, String) {
    let code = said.split(' ').nth(1).and_then(|c| c.parse().ok()).unwrap_or(0);
    (code, said.to_owned())
}

const EXPERIMENT: &str = r#"
title = "two"
duration = "1s"
[host.a]
eth0 = "10.0.0.1/24"
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
name = "line"
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
delay = "5ms"
[[app]]
on = "b"
run = "iperf -s"
[[app]]
on = "a"
run = "iperf -c 10.0.0.2 -t 0.5"
"#;

#[test]
fn the_page_and_a_question() {
    let served = Served::new("page");
    let (code, page) = served.get("/");
    assert_eq!(code, 200);
    assert!(page.contains("<meta name=\"penstock-serve\" content=\"") && page.contains("the page"), "{page}");
    for header in [
        "content-security-policy: default-src 'self'",
        "x-content-type-options: nosniff",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(page.contains(header), "{header}: {page}");
    }
    assert!(!page.contains("access-control-allow"), "{page}");
    assert!(served.get("/main.js").1.contains("text/javascript"));
    let question = json!({ "ask": "check", "text": "tc qdisc add dev eth0 root tbf rate 1mbit\n" });
    let (answer, _) = served.ask("/api/ask", &question);
    assert_eq!(answer["ok"]["findings"][0]["code"], "PS001");
    let (wrong, _) = served.ask("/api/ask", &json!({ "ask": "nothing" }));
    assert!(wrong["faults"][0]["message"].as_str().unwrap().contains("not a question"));
}

#[test]
fn a_run_is_kept_listed_and_compared() {
    let served = Served::new("kept");
    let question = json!({ "ask": "run", "text": EXPERIMENT });
    for name in ["one", "two"] {
        let (answer, told) = served.ask(&format!("/api/ask?keep={name}"), &question);
        assert_eq!(answer["ok"]["kept"], format!("runs/{name}/"), "{answer}");
        assert!(told > 10, "{told} lines of progress");
        let record =
            std::fs::read_to_string(served.folder.join("runs").join(name).join("record.json")).unwrap();
        assert_eq!(answer["ok"]["record"], record);
    }
    let (_, list) = served.get("/api/runs");
    let list: Value = serde_json::from_str(list.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((list[0]["path"].as_str(), list[1]["title"].as_str()), (Some("one"), Some("two")));
    let (code, page) = served.get("/runs/");
    assert!(code == 200 && page.contains("/runs/one/report.html"), "{page}");
    let (code, report) = served.get("/runs/one/report.html");
    assert!(
        code == 200 && report.contains("content-security-policy: sandbox allow-scripts"),
        "{}",
        &report[..600]
    );
    let (code, both) = served.get("/compare?a=one&b=two");
    assert!(code == 200 && both.contains("one against two"), "{}", &both[..600]);
    for wrong in ["/compare", "/compare?a=one", "/compare?a=one&b=../secret", "/compare?a=one&b=three"] {
        assert_eq!(served.get(wrong).0, 400, "{wrong}");
    }
    // What is there and is no run is not written over; what is no name is none.
    std::fs::create_dir(served.folder.join("runs/mine")).unwrap();
    std::fs::write(served.folder.join("runs/mine/thesis"), "x").unwrap();
    let (answer, _) = served.ask("/api/ask?keep=mine", &question);
    assert!(answer["faults"][0]["message"].is_string(), "{answer}");
    assert!(served.folder.join("runs/mine/thesis").is_file());
    for name in ["..", ".hidden", "a/b", "a%2Fb", "", "%2e%2e"] {
        assert_eq!(
            served.post(&format!("/api/ask?keep={name}"), &served.token, &question.to_string()).0,
            400,
            "{name}"
        );
    }
}

#[test]
fn paths_lead_out_of_no_folder() {
    let served = Served::new("paths");
    std::fs::write(served.folder.join("runs/own.txt"), "own").unwrap();
    std::os::unix::fs::symlink(served.folder.join("secret"), served.folder.join("runs/link.txt")).unwrap();
    std::os::unix::fs::symlink(&served.folder, served.folder.join("runs/up")).unwrap();
    assert_eq!(served.get("/runs/own.txt").0, 200);
    let bad = "/runs/../secret /runs/..%2fsecret /runs/%2e%2e/secret /runs/%2e%2e%2fsecret /../secret /runs/link.txt /runs/up/secret /secret \
               /runs//etc/passwd //etc/passwd /runs/%00 /runs/own.txt%00.html /page/../secret /%2e%2e/secret /runs/..\\secret";
    for path in bad.split_whitespace() {
        let (code, body) = served.get(path);
        assert!(matches!(code, 400 | 404), "{path}: {code}");
        assert!(!body.ends_with("secret") && !body.contains("root:"), "{path}: {body}");
    }
}

#[test]
fn hostile_requests_are_refused_and_the_server_goes_on() {
    let served = Served::new("hostile");
    let (at, token) = (served.at, served.token.clone());
    let code = |text: String| split(&served.raw(text.as_bytes())).0;
    let question = "{\"ask\":\"rules\"}";
    assert_eq!(served.post("/api/ask", "", question).0, 403);
    assert_eq!(served.post("/api/ask", &token.replace(|c: char| c.is_ascii_digit(), "x"), question).0, 403);
    assert_eq!(served.post("/api/else", &token, question).0, 404);
    assert_eq!(served.post("/api/ask?x=1", &token, question).0, 404);
    assert_eq!(served.post("/api/ask", &token, "{").0, 400);
    let head = |line: &str, more: &str| format!("{line} HTTP/1.1\r\nConnection: close\r\n{more}\r\n");
    let host = format!("Host: {at}\r\n");
    for (want, text) in [
        (421, head("GET /", "Host: evil.example\r\n")),
        (421, head("GET /", "")),
        (421, head("GET /", &format!("{host}{host}"))),
        (403, head("GET /api/runs", &format!("{host}Origin: http://evil.example\r\n"))),
        (403, head("GET /", &format!("{host}Sec-Fetch-Site: cross-site\r\n"))),
        (405, head("PUT /runs/x", &host)),
        (405, head("DELETE /runs/x", &host)),
        (405, head("OPTIONS /api/ask", &format!("{host}Access-Control-Request-Method: POST\r\n"))),
        (
            415,
            head(
                "POST /api/ask",
                &format!(
                    "{host}X-Penstock-Token: {token}\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n"
                ),
            ),
        ),
        (
            413,
            head(
                "POST /api/ask",
                &format!(
                    "{host}X-Penstock-Token: {token}\r\nContent-Type: application/json\r\nContent-Length: 9223372036854775807\r\n"
                ),
            ),
        ),
        (400, head("POST /api/ask", &format!("{host}Content-Length: 99999999999999999999999999\r\n"))),
        (400, head("POST /api/ask", &format!("{host}Content-Length: -1\r\n"))),
        (400, "GET / HTTP/9.9\r\n\r\n".to_owned()),
        (400, "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n".to_owned()),
        (431, head("GET /", &format!("{host}X: {}\r\n", "x".repeat(1 << 20)))),
    ] {
        assert_eq!(code(text.clone()), want, "{}", &text[..text.len().min(200)]);
    }
    // Two heads at once, a body that never comes, connections that say nothing: others are served meanwhile.
    let idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(at).unwrap()).collect();
    let mut slow = TcpStream::connect(at).unwrap();
    write!(slow, "POST /api/ask HTTP/1.1\r\n{host}X-Penstock-Token: {token}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{").unwrap();
    let twice = served.raw(
        format!(
            "{}{}",
            head("GET /main.js", &host).replace("Connection: close\r\n", ""),
            head("GET /main.js", &host)
        )
        .as_bytes(),
    );
    assert_eq!(twice.matches("HTTP/1.1 200").count(), 2, "{twice}");
    assert_eq!(served.get("/").0, 200);
    let (answer, _) = served.ask("/api/ask", &json!({ "ask": "rules" }));
    assert!(answer["ok"].is_array() || answer["ok"].is_object(), "{answer}");
    drop(idle);
}

/// A run whose browser has gone away ends: the places for questions are free again.
#[test]
fn a_run_that_nobody_waits_for_ends() {
    let served = Served::new("gone");
    let long = EXPERIMENT.replace("duration = \"1s\"", "duration = \"2000s\"").replace("-t 0.5", "-t 1990");
    let body = json!({ "ask": "run", "text": long, "samples": 0 }).to_string();
    for _ in 0..2 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
        let mut stream = TcpStream::connect(served.at).unwrap();
        write!(
            stream,
            "POST /api/ask HTTP/1.1\r\nHost: {}\r\nX-Penstock-Token: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            served.at,
            served.token,
            body.len()
        )
        .unwrap();
        // It has begun: a line of its progress is there.
        let mut some = [0; 1000];
        let mut said = String::new();
        while !said.contains("progress") {
            let n = stream.read(&mut some).unwrap();
            assert!(n > 0, "{said}");
            said.push_str(&String::from_utf8_lossy(&some[..n]));
        }
    }
    let (answer, _) = served
        .ask("/api/ask", &json!({ "ask": "check", "text": "tc qdisc add dev eth0 root tbf rate 1mbit\n" }));
    assert!(answer["ok"].is_object());
}
