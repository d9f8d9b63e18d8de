//! A client that says exactly what it is told to say.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Long enough for the slowest machine: it ends as soon as the answer is there.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    /// Notifications that came before the last answer.
    pub(crate) heard: Vec<Value>,
}

impl Client {
    /// A server with these arguments, past the greeting.
    pub(crate) fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        Self::greeted(sandbox, &[args, &["--structured"]].concat())
    }

    /// A server as an assistant starts it: answers of tools that read are text only.
    pub(crate) fn assistant(sandbox: &Sandbox, args: &[&str]) -> Self {
        Self::greeted(sandbox, args)
    }

    fn greeted(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut client = Self::silent(sandbox, args);
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        client.ask("initialize", hello);
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    /// A server that was not greeted yet.
    pub(crate) fn silent(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut child = sandbox
            .command()
            .arg("mcp")
            .args(args)
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if send.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            next: 0,
            heard: Vec::new(),
        }
    }

    /// A line as it is.
    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    /// The next line; everything on stdout is the protocol.
    #[track_caller]
    pub(crate) fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).expect("a line of JSON")
    }

    /// The whole answer to a request.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&request.to_string());
        self.heard.clear();
        loop {
            let answer = self.hear();
            if answer["id"] == id {
                return answer;
            }
            self.heard.push(answer);
        }
    }

    /// The result of a request that must succeed.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// The result of a tool, whatever became of it.
    #[track_caller]
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// The data of a tool that must succeed.
    #[track_caller]
    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["structuredContent"]["data"].clone()
    }

    /// The text of a tool that must succeed.
    #[track_caller]
    pub(crate) fn text(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// What a tool says that must fail.
    #[track_caller]
    pub(crate) fn fails(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], true, "{name}: {result}");
        let in_data = &result["structuredContent"]["error"];
        let error = result["_meta"].get("mnemon/error").unwrap_or(in_data);
        assert!(error["kind"].is_string(), "{name}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Ends the input and waits for the server to end.
    pub(crate) fn leave(mut self) -> i32 {
        drop(self.stdin.take());
        self.child.wait().unwrap().code().expect("not killed")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
