//! Strict stand-ins for memory services: a request that has another form than the published one is
//! refused, and the refusal is kept for the test to see.

mod acontext;
mod call;
mod mem0;
mod reme;
mod schema;
mod zep;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use call::Call;
use serde_json::{Value, json};
pub use zep::FORMERLY;

/// The key that the doubles accept.
pub const DOUBLE_KEY: &str = "strict-double-key";
/// Seconds after which a double that refuses with 429 may be asked again.
pub const RETRY_AFTER_S: u64 = 7;

/// The service that a double stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryService {
    Mem0,
    /// The platform, API v1.
    Mem0V1,
    /// Self-hosted.
    Mem0Oss,
    Zep,
    /// Up to 0.3.
    Reme,
    /// From 0.4. It keeps the user [`ONE_USER`].
    RemeJobs,
    Acontext,
}

/// The user of a double that keeps one user.
pub const ONE_USER: &str = "ann";

impl MemoryService {
    pub const ALL: [Self; 7] = [
        Self::Mem0,
        Self::Mem0V1,
        Self::Mem0Oss,
        Self::Zep,
        Self::Reme,
        Self::RemeJobs,
        Self::Acontext,
    ];

    /// The word before `+http://` in a URL.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Mem0 => "mem0",
            Self::Mem0V1 => "mem0-v1",
            Self::Mem0Oss => "mem0-oss",
            Self::Zep => "zep",
            Self::Reme => "reme",
            Self::RemeJobs => "reme-jobs",
            Self::Acontext => "acontext",
        }
    }

    /// The header that must hold the key, and its value.
    fn key_header(self) -> (&'static str, String) {
        match self {
            Self::Mem0 | Self::Mem0V1 => ("authorization", format!("Token {DOUBLE_KEY}")),
            Self::Mem0Oss => ("x-api-key", DOUBLE_KEY.to_owned()),
            Self::Zep => ("authorization", format!("Api-Key {DOUBLE_KEY}")),
            // As behind a proxy, since ReMe has no keys.
            Self::Reme | Self::RemeJobs | Self::Acontext => {
                ("authorization", format!("Bearer {DOUBLE_KEY}"))
            }
        }
    }

    fn answer(self, call: &Call, state: &mut State) -> Answer {
        match self {
            Self::Mem0 => mem0::platform3(call, state),
            Self::Mem0V1 => mem0::platform1(call, state),
            Self::Mem0Oss => mem0::self_hosted(call, state),
            Self::Zep => zep::answer(call, state),
            Self::Reme => reme::answer(call, state),
            Self::RemeJobs => reme::answer_jobs(call, state),
            Self::Acontext => acontext::answer(call, state),
        }
    }

    /// An error in the form of the service.
    fn error(self, what: &str) -> Value {
        match self {
            Self::Mem0 | Self::Mem0V1 | Self::Mem0Oss | Self::Reme | Self::RemeJobs => {
                json!({ "detail": what })
            }
            Self::Zep => json!({ "message": what }),
            Self::Acontext => json!({ "code": 400, "msg": what, "data": null }),
        }
    }
}

/// A status and a body, or why the request has another form than the published one.
type Answer = Result<(u16, Value), String>;

/// The treatment of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// A good answer.
    Good,
    /// No answer until the other side gives up.
    Hang,
    Status(u16),
    /// A good answer of which half is sent, as if it were whole.
    Truncated,
    /// A good answer of which half is sent, with the length of the whole.
    Cut,
    /// JSON of another form.
    WrongTypes,
    /// This answer, with status 200.
    Answer(Value),
}

#[derive(Debug, Default)]
struct State {
    /// User and text.
    memories: Vec<(String, String)>,
    users: BTreeSet<String>,
    /// Conversation and its user.
    threads: BTreeMap<String, String>,
    spaces: Vec<acontext::Space>,
    refused: Vec<String>,
    treatments: VecDeque<Treatment>,
}

impl State {
    /// The texts of a user, each with its number.
    fn texts_of(&self, user: &str) -> impl Iterator<Item = (usize, &str)> {
        let own = self.memories.iter().filter(move |(owner, _)| owner == user);
        own.map(|(_, text)| text.as_str()).enumerate()
    }
}

/// A memory service on this machine.
#[derive(Debug)]
pub struct MemoryDouble {
    service: MemoryService,
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
}

impl MemoryDouble {
    /// Listens on a free port.
    #[must_use]
    pub fn start(service: MemoryService) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let double = Self {
            service,
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
                std::thread::spawn(move || serve(stream, service, &state).ok());
            }
        });
        double
    }

    /// Such as `zep+http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        let setting = match self.service {
            MemoryService::RemeJobs => format!("?user={ONE_USER}"),
            _ => String::new(),
        };
        format!("{}+http://{}{setting}", self.service.scheme(), self.address)
    }

    /// The next requests are treated so, one after the other; later ones get good answers.
    pub fn misbehave(&self, treatments: &[Treatment]) {
        self.state.lock().unwrap().treatments = treatments.to_vec().into();
    }

    /// Why requests were refused.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        self.state.lock().unwrap().refused.clone()
    }

    /// Adds a learning space of Acontext with one skill, and returns its id.
    #[must_use]
    pub fn add_space(&self, name: &str, description: &str, instructions: &str) -> String {
        let mut state = self.state.lock().unwrap();
        acontext::add_space(&mut state, name, description, instructions)
    }

    /// User and text of all that was added.
    #[must_use]
    pub fn memories(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().memories.clone()
    }
}

impl Drop for MemoryDouble {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    mut stream: TcpStream,
    service: MemoryService,
    state: &Mutex<State>,
) -> std::io::Result<()> {
    let call = Call::read(&mut stream)?;
    let treatment = state.lock().unwrap().treatments.pop_front();
    let treatment = treatment.unwrap_or(Treatment::Good);
    let (status, body) = match treatment {
        Treatment::Hang => return stream.read(&mut [0; 1]).map(drop),
        Treatment::Status(status) => (status, service.error("on demand")),
        Treatment::WrongTypes => (200, wrong_types()),
        Treatment::Answer(ref body) => (200, body.clone()),
        Treatment::Good | Treatment::Truncated | Treatment::Cut => {
            answer(&call, service, &mut state.lock().unwrap())
        }
    };
    let body = body.to_string();
    let half = &body[..body.floor_char_boundary(body.len() / 2)];
    let (sent, length) = match treatment {
        Treatment::Truncated => (half, half.len()),
        Treatment::Cut => (half, body.len()),
        _ => (body.as_str(), body.len()),
    };
    let wait = match status {
        429 => format!("retry-after: {RETRY_AFTER_S}\r\n"),
        _ => String::new(),
    };
    let whole = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {wait}connection: close\r\n\r\n{sent}"
    );
    stream.write_all(whole.as_bytes())
}

/// Each field that a client reads, with a value of another type.
fn wrong_types() -> Value {
    json!({"results": 7, "status": 7, "edges": 7, "threads": 7, "success": 7, "paths": 7,
        "code": "7"})
}

fn answer(call: &Call, service: MemoryService, state: &mut State) -> (u16, Value) {
    let (name, value) = service.key_header();
    if call.header(name) != Some(value.as_str()) {
        return (401, service.error("the key is not valid"));
    }
    let answered = call.check().and_then(|()| service.answer(call, state));
    answered.unwrap_or_else(|why| {
        let why = format!("{} {}: {why}", call.method, call.path);
        state.refused.push(why.clone());
        (400, service.error(&why))
    })
}
