//! A strict stand-in for Mem0's API: a request that has another form than the published one is
//! refused, and the refusal is kept for the test to see.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

/// What the double does instead of a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mem0Mischief {
    /// No answer until the other side gives up.
    Hang,
    Status(u16),
    /// A good answer of which half is sent.
    Truncated,
    /// JSON of another form.
    WrongTypes,
}

#[derive(Debug, Default)]
struct State {
    /// User and text.
    memories: Vec<(String, String)>,
    refused: Vec<String>,
    mischief: Vec<Mem0Mischief>,
}

/// Mem0 on this machine.
#[derive(Debug)]
pub struct Mem0Double {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
}

/// The key that the double accepts.
pub const MEM0_KEY: &str = "m0-strict-double";

impl Mem0Double {
    /// Listens on a free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let double = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
            stop: Arc::default(),
        };
        let (state, stop) = (double.state.clone(), double.stop.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let state = state.clone();
                std::thread::spawn(move || serve(stream, &state).ok());
            }
        });
        double
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The next requests get these, one each.
    pub fn misbehave(&self, mischief: &[Mem0Mischief]) {
        self.state.lock().unwrap().mischief = mischief.to_vec();
    }

    /// Why requests were refused.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        self.state.lock().unwrap().refused.clone()
    }

    /// User and text of all that was added.
    #[must_use]
    pub fn memories(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().memories.clone()
    }
}

impl Drop for Mem0Double {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

struct Call {
    method: String,
    path: String,
    head: String,
    body: Value,
}

fn read(stream: &mut TcpStream) -> std::io::Result<Call> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65_536]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_lowercase();
            let length = lower
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(0, |length| length.trim().parse().unwrap());
            if body.len() >= length {
                let mut first = head.lines().next().unwrap_or_default().split(' ');
                let mut word = || first.next().unwrap_or_default().to_owned();
                return Ok(Call {
                    method: word(),
                    path: word(),
                    head: head.to_owned(),
                    body: serde_json::from_str(body).unwrap_or_default(),
                });
            }
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let call = read(&mut stream)?;
    let mischief = {
        let mut state = state.lock().unwrap();
        (!state.mischief.is_empty()).then(|| state.mischief.remove(0))
    };
    let (status, body) = match mischief {
        Some(Mem0Mischief::Hang) => return stream.read(&mut [0; 1]).map(drop),
        Some(Mem0Mischief::Status(status)) => (status, json!({"detail": "on demand"})),
        Some(Mem0Mischief::WrongTypes) => (200, json!({"results": 7, "status": 7})),
        Some(Mem0Mischief::Truncated) | None => answer(&call, &mut state.lock().unwrap()),
    };
    let body = body.to_string();
    let sent = match mischief {
        Some(Mem0Mischief::Truncated) => &body[..body.len() / 2],
        _ => body.as_str(),
    };
    let length = sent.len();
    let whole = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{sent}"
    );
    stream.write_all(whole.as_bytes())
}

fn answer(call: &Call, state: &mut State) -> (u16, Value) {
    let key = format!("authorization: token {MEM0_KEY}");
    if !call.head.to_lowercase().lines().any(|line| line == key) {
        return (401, json!({"detail": "Invalid API key"}));
    }
    let checked = match (call.method.as_str(), call.path.as_str()) {
        ("GET", "/v1/ping/") => Ok(json!({"status": "ok", "org_id": "o", "project_id": "p",
            "user_email": "a@example.org"})),
        ("POST", "/v3/memories/add/") => add(&call.body, state),
        ("POST", "/v3/memories/search/") => search(&call.body, state),
        (method, path) => Err(format!("{method} {path} is not a route")),
    };
    checked.map_or_else(
        |why| {
            state.refused.push(why.clone());
            (400, json!({ "detail": why }))
        },
        |body| (200, body),
    )
}

/// The object, if it has no other fields than these.
fn only<'v>(body: &'v Value, known: &[&str]) -> Result<&'v Map<String, Value>, String> {
    let object = body.as_object().ok_or("the body is not an object")?;
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown field {key}")),
        None => Ok(object),
    }
}

fn text<'v>(object: &'v Map<String, Value>, field: &str) -> Result<&'v str, String> {
    let text = object.get(field).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
        .ok_or_else(|| format!("{field} is not a text"))
}

fn add(body: &Value, state: &mut State) -> Result<Value, String> {
    let known = [
        "messages",
        "user_id",
        "agent_id",
        "app_id",
        "run_id",
        "filters",
        "metadata",
        "infer",
        "expiration_date",
        "timestamp",
        "custom_instructions",
        "agent_custom_instructions",
        "custom_categories",
        "structured_data_schema",
        "immutable",
        "includes",
        "excludes",
    ];
    let body = only(body, &known)?;
    let user = text(body, "user_id")?.to_owned();
    let messages = body.get("messages").and_then(Value::as_array);
    for message in messages.ok_or("messages is not a list")? {
        let message = only(message, &["role", "content"])?;
        if !["user", "assistant"].contains(&text(message, "role")?) {
            return Err("role is neither user nor assistant".to_owned());
        }
        let content = text(message, "content")?.to_owned();
        state.memories.push((user.clone(), content));
    }
    Ok(
        json!({"message": "Memory processing has been queued", "status": "PENDING",
        "event_id": "e-1"}),
    )
}

fn search(body: &Value, state: &State) -> Result<Value, String> {
    let known = [
        "query",
        "filters",
        "top_k",
        "threshold",
        "rerank",
        "show_expired",
        "reference_date",
        "latest_only",
        "keyword_search",
        "fields",
        "categories",
        "metadata",
    ];
    let body = only(body, &known)?;
    text(body, "query")?;
    let top = body
        .get("top_k")
        .and_then(Value::as_u64)
        .ok_or("top_k is not a number")?;
    let filters = only(
        body.get("filters").unwrap_or(&Value::Null),
        &["AND", "OR", "user_id"],
    )?;
    let names = filters.get("AND").and_then(Value::as_array);
    let user = names.and_then(|names| names.iter().find_map(|one| one.get("user_id")?.as_str()));
    let user = user.or_else(|| filters.get("user_id")?.as_str());
    let user = user.ok_or("at least one entity id is required in the filters")?;
    let own = state.memories.iter().filter(|(owner, _)| owner == user);
    let found = own.enumerate().take(top as usize).map(|(n, (_, memory))| {
        json!({"id": n.to_string(), "memory": memory, "score": 0.5, "user_id": user,
            "created_at": "2026-01-31T12:00:00Z"})
    });
    Ok(json!({"results": found.collect::<Vec<Value>>()}))
}
