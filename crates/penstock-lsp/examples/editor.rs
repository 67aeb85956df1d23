//! An editor that opens a script and is told what is wrong in it.

use lsp_server::{Connection, Message, Notification, Request};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (server, editor) = Connection::memory();
    let serving = std::thread::spawn(move || penstock_lsp::serve(&server));
    let say = |method: &str, params| Message::Notification(Notification::new(method.to_owned(), params));
    let ask =
        |id: i32, method: &str, params| Message::Request(Request::new(id.into(), method.to_owned(), params));
    editor.sender.send(ask(1, "initialize", json!({ "capabilities": {} })))?;
    editor.receiver.recv()?;
    editor.sender.send(say("initialized", json!({})))?;
    let text = "tc qdisc add dev eth0 root tbf rate 1mbit\n";
    let document =
        json!({ "uri": "file:///shape.sh", "languageId": "shellscript", "version": 1, "text": text });
    editor.sender.send(say("textDocument/didOpen", json!({ "textDocument": document })))?;
    let told = loop {
        if let Message::Notification(said) = editor.receiver.recv()? {
            break said;
        }
    };
    let first = told.params["diagnostics"][0]["message"].as_str().unwrap_or_default().to_owned();
    println!("{first}");
    assert!(first.contains("burst"), "{first}");
    editor.sender.send(ask(2, "shutdown", json!(null)))?;
    editor.receiver.recv()?;
    editor.sender.send(say("exit", json!(null)))?;
    serving.join().map_err(|_| "the server panicked")??;
    Ok(())
}
