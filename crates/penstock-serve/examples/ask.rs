//! A server on loopback that is asked what is wrong with a line, as the page asks it.

use penstock_serve::{Page, Server, Settings};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("penstock-serve-example-{}", std::process::id()));
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server =
        Server::bind(Settings { listen, folder: folder.clone(), page: Page::None, names: Vec::new() })?;
    let (link, stop) = (server.link(), server.stopper());
    let thread = std::thread::spawn(move || server.run());

    // The link tells where it listens, and the token that lets one ask.
    let (at, token) = link.trim_start_matches("http://").split_once("/#token=").ok_or("no link")?;
    let question = r#"{ "ask": "check", "text": "tc qdisc add dev eth0 root tbf rate 1mbit\n" }"#;
    let mut stream = TcpStream::connect(at)?;
    write!(
        stream,
        "POST /api/ask HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         X-Penstock-Token: {token}\r\nContent-Length: {}\r\n\r\n{question}",
        question.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    println!("{answer}");
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("PS001"));

    stop.stop();
    thread.join().map_err(|_| "the server panicked")?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
