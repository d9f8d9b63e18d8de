use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What the endpoint does with a request.
#[derive(Clone, Debug)]
pub enum Move {
    /// A chat model's answer with this text, in the form that the path asks for.
    Say(String),
    /// This status, with these header lines (each with its line break) and this body.
    Status(u16, String, String),
    /// A good answer of which half is sent.
    Half,
    /// Nothing, until the other side gives up.
    Hang,
    /// An answer without end.
    Endless,
    /// The connection is cut before the request was read.
    Reset,
}

impl Move {
    /// A chat model's answer.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }

    /// A status and a body.
    #[must_use]
    pub fn status(status: u16, body: &str) -> Self {
        Self::Status(status, String::new(), body.to_owned())
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The first line and the headers.
    pub head: String,
    pub body: Value,
}

/// A chat model on this machine that misbehaves on demand. The nth connection gets the nth move;
/// the last one is repeated.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Arrived>>>,
    stop: Arc<AtomicBool>,
}

impl Endpoint {
    /// Listens on a free port.
    #[must_use]
    pub fn start(moves: Vec<Move>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Self {
            address,
            seen: Arc::default(),
            stop: Arc::default(),
        };
        let (seen, stop) = (endpoint.seen.clone(), endpoint.stop.clone());
        std::thread::spawn(move || {
            for (n, stream) in listener.incoming().enumerate() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), Some(last)) = (stream, moves.len().checked_sub(1)) else {
                    return;
                };
                let (step, seen) = (moves[n.min(last)].clone(), seen.clone());
                // A client that went away is none of our business.
                std::thread::spawn(move || serve(stream, &step, &seen).ok());
            }
        });
        endpoint
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that were read, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Arrived> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for somebody to come.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, step: &Move, seen: &Mutex<Vec<Arrived>>) -> std::io::Result<()> {
    if let Move::Reset = step {
        // What was not read makes the system answer with a reset.
        return stream.read(&mut [0; 1]).map(drop);
    }
    let arrived = request(&mut stream)?;
    let is_messages = arrived.head.contains("/v1/messages ");
    seen.lock().unwrap().push(arrived);
    let good = |text: &str| response(200, "", &answer(text, is_messages));
    match step {
        Move::Say(text) => stream.write_all(good(text).as_bytes()),
        Move::Status(status, headers, body) => {
            stream.write_all(response(*status, headers, body).as_bytes())
        }
        Move::Half => {
            let whole = good("this never arrives as a whole");
            stream.write_all(&whole.as_bytes()[..whole.len() - 40])
        }
        Move::Hang => stream.read(&mut [0; 1]).map(drop),
        Move::Endless => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
            stream.write_all(head.as_bytes())?;
            let piece = [b' '; 65_536];
            loop {
                stream.write_all(&piece)?;
            }
        }
        Move::Reset => Ok(()),
    }
}

fn request(stream: &mut TcpStream) -> std::io::Result<Arrived> {
    let mut bytes = Vec::new();
    let mut piece = [0; 65_536];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            let head = head.to_owned();
            return Ok(Arrived { head, body });
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

fn response(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// An answer that counts 11 tokens in and 7 out.
fn answer(text: &str, is_messages: bool) -> String {
    let answer = match is_messages {
        true => json!({
            "type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }),
        false => json!({
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }),
    };
    answer.to_string()
}
