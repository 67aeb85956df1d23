//! The language server: what is wrong in scripts of tc and in experiment files, with fixes; what a class is promised, what a key means, the
//! words and keys that may follow, and the way to a class.
//!
//! Follows: the Language Server Protocol 3.17. Texts come whole; positions count UTF-16.

mod keys;
mod place;
mod text;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use text::{Kind, Text};

/// What the server can do.
fn abilities() -> Value {
    json!({
        "positionEncoding": "utf-16",
        "textDocumentSync": { "openClose": true, "change": 1 },
        "hoverProvider": true,
        "completionProvider": { "triggerCharacters": [" "] },
        "codeActionProvider": { "codeActionKinds": ["quickfix", "source.fixAll"] },
        "definitionProvider": true,
    })
}

/// Serves an editor on standard input and output until it says that it is done.
///
/// # Errors
/// A sentence: what it said is not the protocol's, or it went away without a word.
pub fn stdio() -> Result<(), String> {
    let (connection, threads) = Connection::stdio();
    let done = serve(&connection);
    // The threads end when nobody holds their channels.
    drop(connection);
    threads.join().map_err(|e| e.to_string())?;
    done
}

/// Serves an editor until it says that it is done.
///
/// # Errors
/// A sentence: what it said is not the protocol's.
pub fn serve(connection: &Connection) -> Result<(), String> {
    let (id, _) = connection.initialize_start().map_err(|e| e.to_string())?;
    let info = json!({ "name": "penstock", "version": env!("CARGO_PKG_VERSION") });
    let begun = json!({ "capabilities": abilities(), "serverInfo": info });
    connection.initialize_finish(id, begun).map_err(|e| e.to_string())?;
    let mut texts: BTreeMap<String, Text> = BTreeMap::new();
    loop {
        // Texts are looked at when the editor has nothing more to say: while somebody types, only the last is.
        let message = match connection.receiver.try_recv() {
            Ok(message) => message,
            Err(_) => {
                for (uri, text) in texts.iter_mut().filter(|(_, text)| !text.is_looked_at()) {
                    tell(connection, uri, text.look())?;
                }
                match connection.receiver.recv() {
                    Ok(message) => message,
                    Err(_) => return Ok(()),
                }
            }
        };
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(|e| e.to_string())? {
                    return Ok(());
                }
                send(connection, Message::Response(answer(request, &mut texts)))?;
            }
            Message::Notification(note) => hear(connection, &note, &mut texts)?,
            Message::Response(_) => {}
        }
    }
}

fn send(connection: &Connection, message: Message) -> Result<(), String> {
    connection.sender.send(message).map_err(|e| e.to_string())
}

/// Tells what was found in a text.
fn tell(connection: &Connection, uri: &str, found: Vec<Value>) -> Result<(), String> {
    let method = "textDocument/publishDiagnostics".to_owned();
    let params = json!({ "uri": uri, "diagnostics": found });
    send(connection, Message::Notification(Notification { method, params }))
}

/// A text is opened, changed or closed.
fn hear(
    connection: &Connection,
    note: &Notification,
    texts: &mut BTreeMap<String, Text>,
) -> Result<(), String> {
    let document = &note.params["textDocument"];
    let Some(uri) = document["uri"].as_str() else { return Ok(()) };
    match note.method.as_str() {
        "textDocument/didOpen" => {
            let whole = document["text"].as_str().unwrap_or_default();
            let language = document["languageId"].as_str().unwrap_or_default();
            if let Some(kind) = Kind::of(language, uri, whole) {
                texts.insert(uri.to_owned(), Text::new(kind, uri, whole));
            }
        }
        "textDocument/didChange" => {
            let whole = note.params["contentChanges"].as_array().and_then(|all| all.last()?["text"].as_str());
            if let (Some(text), Some(whole)) = (texts.get_mut(uri), whole) {
                text.becomes(whole);
            }
        }
        "textDocument/didClose" => {
            texts.remove(uri);
            tell(connection, uri, Vec::new())?;
        }
        _ => {}
    }
    Ok(())
}

fn answer(request: Request, texts: &mut BTreeMap<String, Text>) -> Response {
    let Request { id, method, params } = request;
    let text = params["textDocument"]["uri"].as_str().and_then(|uri| texts.get_mut(uri));
    let at = &params["position"];
    let at = (at["line"].as_u64().unwrap_or(0) as usize, at["character"].as_u64().unwrap_or(0) as usize);
    let given = match (method.as_str(), text) {
        ("textDocument/hover", Some(text)) => text.meaning(at),
        ("textDocument/completion", Some(text)) => text.words(at),
        ("textDocument/definition", Some(text)) => text.definition(at),
        ("textDocument/codeAction", Some(text)) => text.actions(&params["range"]),
        (
            "textDocument/hover"
            | "textDocument/completion"
            | "textDocument/definition"
            | "textDocument/codeAction",
            None,
        ) => Value::Null,
        _ => {
            let sentence = format!("{method} is not among what the server can do");
            return Response::new_err(id, ErrorCode::MethodNotFound as i32, sentence);
        }
    };
    Response::new_ok(id, given)
}
