//! A scripted editor at the server.

use lsp_server::{Connection, Message, Notification, Request, RequestId};
use serde_json::{Value, json};
use std::thread::JoinHandle;

struct Editor {
    line: Connection,
    server: Option<JoinHandle<Result<(), String>>>,
    asked: i32,
}

const URI: &str = "file:///home/me/shape.sh";
const SCRIPT: &str = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                      tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                      tc class add dev eth0 parent 1:1 classid 1:10 htb rate 600kbit ceil 1mbit\n\
                      tc class add dev eth0 parent 1:1 classid 1:20 htb rate 400kbit ceil 1mbit\n\
                      tc qdisc add dev eth0 parent 1:20 fq_codel lmit 300\n";

impl Editor {
    fn begin() -> Editor {
        let (line, end) = Connection::memory();
        let server = std::thread::spawn(move || penstock_lsp::serve(&end));
        let mut editor = Editor { line, server: Some(server), asked: 0 };
        let begun = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(begun["capabilities"]["hoverProvider"], true);
        editor.tell("initialized", json!({}));
        editor
    }
    fn tell(&self, method: &str, params: Value) {
        let note = Notification { method: method.to_owned(), params };
        self.line.sender.send(Message::Notification(note)).unwrap();
    }
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        let request = Request { id: id.clone(), method: method.to_owned(), params };
        self.line.sender.send(Message::Request(request)).unwrap();
        loop {
            match self.line.receiver.recv().unwrap() {
                Message::Response(response) if response.id == id => {
                    return match response.response_result {
                        Ok(result) => result,
                        Err(error) => json!({ "error": error.message }),
                    };
                }
                _ => {}
            }
        }
    }
    fn open(&self, uri: &str, language: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }
    /// The next findings that are told.
    fn told(&self) -> Vec<Value> {
        loop {
            if let Message::Notification(note) = self.line.receiver.recv().unwrap() {
                assert_eq!(note.method, "textDocument/publishDiagnostics");
                return note.params["diagnostics"].as_array().unwrap().clone();
            }
        }
    }
    fn at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({ "line": line, "character": character });
        self.ask(method, json!({ "textDocument": { "uri": uri }, "position": position }))
    }
    fn end(mut self) {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.server.take().unwrap().join().unwrap().unwrap();
    }
}

#[test]
fn a_script_is_looked_at_while_it_is_written() {
    let mut editor = Editor::begin();
    editor.open(URI, "shellscript", SCRIPT);
    let found = editor.told();
    let wrong = found.iter().find(|f| f["code"] == "PS001").unwrap();
    assert_eq!(wrong["range"]["start"], json!({ "line": 4, "character": 43 }));
    assert_eq!(wrong["severity"], 1);
    // 1:10 in line 3: what it is promised, and where it is made.
    let hover = editor.at("textDocument/hover", URI, 2, 42);
    assert!(hover["contents"]["value"].as_str().unwrap().contains("guaranteed 600kbit"), "{hover}");
    let place = editor.at("textDocument/definition", URI, 4, 30);
    assert_eq!((&place["uri"], &place["range"]["start"]["line"]), (&json!(URI), &json!(3)));
    let changed = SCRIPT.replace("lmit", "limit");
    let document = json!({ "uri": URI, "version": 2 });
    editor.tell(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": changed }] }),
    );
    assert!(editor.told().iter().all(|f| f["code"] != "PS001"));
    let line = format!("{changed}tc qdisc add dev eth0 root tb");
    editor.tell(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": line }] }),
    );
    let words = editor.at("textDocument/completion", URI, 5, 29);
    assert!(words.as_array().unwrap().iter().any(|w| w["label"] == "tbf"), "{words}");
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    editor.end();
}

#[test]
fn safe_fixes_are_offered_where_they_are() {
    let text = "#!/bin/sh\ntc qdisc add dev eth0 root handle 1: htb default 10\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n";
    let mut editor = Editor::begin();
    editor.open(URI, "shellscript", text);
    editor.told();
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } });
    let params = json!({ "textDocument": { "uri": URI }, "range": range, "context": { "diagnostics": [] } });
    let actions = editor.ask("textDocument/codeAction", params);
    let all = actions.as_array().unwrap();
    let whole =
        all.iter().find(|a| a["kind"] == "source.fixAll").expect("a fix for a script that cannot run twice");
    let fixed = whole["edit"]["changes"][URI][0]["newText"].as_str().unwrap().to_owned();
    assert_ne!(fixed, text);
    let document = json!({ "uri": URI, "version": 2 });
    editor.tell(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": fixed }] }),
    );
    editor.told();
    let params =
        json!({ "textDocument": { "uri": URI }, "range": { "start": { "line": 0 }, "end": { "line": 9 } } });
    assert_eq!(editor.ask("textDocument/codeAction", params), json!([]));
    editor.end();
}

#[test]
fn an_experiment_has_its_faults_in_their_places() {
    let uri = "file:///home/me/first.toml";
    let text = "title = \"x\"\nnonsense = 1\n[host.pc]\neth0 = \"10.0.0.2/24\"\n[host.server]\neth0 = \"10.0.0.1/24\"\n\
                [[link]]\nends = [\"pc:eth0\", \"server:eth0\"]\n";
    let mut editor = Editor::begin();
    editor.open(uri, "toml", text);
    let found = editor.told();
    assert!(found.iter().any(|f| f["range"]["start"]["line"] == 1), "{found:?}");
    assert_eq!(editor.at("textDocument/definition", uri, 7, 22)["range"]["start"]["line"], 4);
    // Keys and words of a table, and what they mean.
    let label = |all: &Value, word: &str| all.as_array().unwrap().iter().any(|one| one["label"] == word);
    let keys = editor.at("textDocument/completion", uri, 8, 0);
    assert!(label(&keys, "framing") && !label(&keys, "ends"), "{keys}");
    let hover = editor.at("textDocument/hover", uri, 7, 2)["contents"]["value"].clone();
    assert!(hover.as_str().unwrap().contains("Two ends; more share one medium"), "{hover}");
    let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": format!("{text}framing = ") }] });
    editor.tell("textDocument/didChange", change);
    let words = editor.at("textDocument/completion", uri, 8, 10);
    assert!(label(&words, "\"atm\""), "{words}");
    // Another TOML file is left alone.
    editor.open("file:///Cargo.toml", "toml", "[package]\n");
    assert_eq!(editor.at("textDocument/hover", "file:///Cargo.toml", 0, 2), Value::Null);
    let unknown = editor.ask("textDocument/rename", json!({}));
    assert!(unknown["error"].as_str().unwrap().contains("textDocument/rename"));
    editor.end();
}
