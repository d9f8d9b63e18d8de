//! A line for each message, in and out. Whatever a client sends, it is answered or, where the
//! protocol forbids an answer, passed over; the session goes on.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::answer::discreet;

/// JSON-RPC's numbers for what is no request.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

/// What editors put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Messages over a pair of streams.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    write: Arc<Mutex<W>>,
    /// The line that is being read; it stays here when a read is given up halfway.
    line: Vec<u8>,
    most: usize,
    /// Whether the rest of a line that is too long is being passed over.
    skipping: bool,
    /// A refusal on its way out. A task of its own writes it: a read may be given up at any moment,
    /// and half an answer would spoil the next one.
    refusal: Option<JoinHandle<()>>,
}

/// What came in.
enum Came {
    Line,
    TooLong,
    End,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// A line may have so many bytes.
    pub(super) fn new(read: R, write: W, most: usize) -> Self {
        Self {
            read: BufReader::new(read),
            write: Arc::new(Mutex::new(write)),
            line: Vec::new(),
            most,
            skipping: false,
            refusal: None,
        }
    }

    /// Reads up to the end of a line. Nothing is lost if it is given up halfway.
    async fn next(&mut self) -> io::Result<Came> {
        loop {
            let there = self.read.fill_buf().await?;
            if there.is_empty() {
                // A last line may lack its break.
                let rest = !self.line.is_empty() && !self.skipping;
                return Ok(if rest { Came::Line } else { Came::End });
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(there.len(), |end| end + 1);
            let too_long = self.line.len() + taken > self.most;
            if !self.skipping && !too_long {
                self.line
                    .extend_from_slice(there.get(..taken).unwrap_or_default());
            }
            self.read.consume(taken);
            match (self.skipping, too_long, end.is_some()) {
                (true, _, ended) => self.skipping = !ended,
                (false, true, ended) => {
                    self.skipping = !ended;
                    self.line = Vec::new();
                    return Ok(Came::TooLong);
                }
                (false, false, true) => return Ok(Came::Line),
                (false, false, false) => {}
            }
        }
    }

    fn refuse(&mut self, refusal: &Value) {
        let line = format!("{refusal}\n");
        let write = self.write.clone();
        self.refusal = Some(tokio::spawn(async move {
            let mut write = write.lock().await;
            // Who does not listen any more is noticed by the next read.
            if write.write_all(line.as_bytes()).await.is_ok() {
                let _ = write.flush().await;
            }
        }));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                let _ = refusal.await;
                self.refusal = None;
            }
            let refusal = match self.next().await {
                Ok(Came::End) | Err(_) => return None,
                Ok(Came::TooLong) => Some(too_long(self.most)),
                Ok(Came::Line) => {
                    let read = read(&self.line);
                    // One long message does not keep its memory.
                    match self.line.capacity() > KEPT_BYTES {
                        true => self.line = Vec::new(),
                        false => self.line.clear(),
                    }
                    match read {
                        Ok(Some(message)) => return Some(message),
                        Ok(None) => None,
                        Err(refusal) => Some(refusal),
                    }
                }
            };
            if let Some(refusal) = refusal {
                self.refuse(&refusal);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.flush().await
    }
}

/// A buffer that is kept for the next line.
const KEPT_BYTES: usize = 1024 * 1024;

/// The message of a line; nothing where there is nothing to answer; or the answer.
fn read(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Ok(Some(message));
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(said) => refusal(&said).map_or(Ok(None), Err),
        Err(error) => {
            let what = format!("this line is not JSON ({error}); send one message per line");
            Err(error_of(&Value::Null, PARSE_ERROR, &what))
        }
    }
}

/// The answer to JSON that is no message; none to a notification or to an answer.
fn refusal(said: &Value) -> Option<Value> {
    let Some(members) = said.as_object() else {
        let what = match said.is_array() {
            true => "a list of messages is not supported; send them one by one",
            false => "a message is a JSON object with jsonrpc, id and method",
        };
        return Some(error_of(&Value::Null, INVALID_REQUEST, what));
    };
    let is_answer = members.contains_key("result") || members.contains_key("error");
    if is_answer && !members.contains_key("method") {
        return None;
    }
    let id = members.get("id");
    let usable = id.filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let Some(method) = members.get("method").and_then(Value::as_str) else {
        let id = usable.unwrap_or(&Value::Null);
        let what = "`method` is missing, or is not a string";
        return Some(error_of(id, INVALID_REQUEST, what));
    };
    let Some(id) = usable else {
        // A notification, of which the protocol says that it is never answered.
        let what = "`id` must be a string or an integer";
        return id.map(|_| error_of(&Value::Null, INVALID_REQUEST, what));
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        let what = "`jsonrpc` must be \"2.0\"";
        return Some(error_of(id, INVALID_REQUEST, what));
    }
    let method = discreet(method, 60);
    let what = match members.get("params") {
        Some(params) if !params.is_object() => format!("`params` of {method} must be an object"),
        _ => format!("`params` of {method} are not what it takes"),
    };
    Some(error_of(id, INVALID_PARAMS, &what))
}

fn too_long(most: usize) -> Value {
    let what = format!("a line may have at most {most} bytes; this one was passed over");
    error_of(&Value::Null, INVALID_REQUEST, &what)
}

fn error_of(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests;
