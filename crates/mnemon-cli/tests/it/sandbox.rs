//! Runs the built program in a folder of its own, with an environment that is the same everywhere.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
    vars: Vec<(String, String)>,
}

/// What a run of the program left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The output of a run that must have succeeded without a word on stderr.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("one JSON document")
    }

    /// Exit code and message of a run that must have failed.
    #[track_caller]
    pub(crate) fn failed(self) -> (i32, String) {
        assert_ne!(self.code, 0, "it succeeded: {}", self.out);
        (self.code, self.err)
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            vars: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and returns its path as text.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Writes the user's own configuration file.
    pub(crate) fn config(&self, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(".config/mnemon")).unwrap();
        self.file(".config/mnemon/mnemon.toml", content);
    }

    pub(crate) fn command(&self) -> Command {
        // Measurements name a release build.
        let program = std::env::var_os("MNEMON_BIN");
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_mnemon").into());
        let mut command = Command::new(program);
        command
            .current_dir(self.folder())
            .env_clear()
            .env("HOME", self.folder())
            .env("USER", "ann")
            .env("TZ", "UTC")
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.pipe(b"", args)
    }

    /// Runs with these bytes on stdin.
    pub(crate) fn pipe(&self, input: &[u8], args: &[&str]) -> Ran {
        let mut child = self
            .command()
            .args(args)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // On a thread: a program that stops reading early must not block us.
        let feeder = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Ran {
            code: output.status.code().expect("not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Adds a note under this id and returns what was printed.
    pub(crate) fn note(&self, id: &str, content: &str) -> String {
        let args = ["add", content, "--id", id, "--created", CREATED];
        self.run(&args).ok()
    }

    /// Everything in the store, for comparing before and after.
    pub(crate) fn state(&self) -> String {
        let history = self.run(&["history", "--json", "--limit", "999"]).ok();
        self.run(&["export"]).ok() + &history
    }

    /// The text with what differs between runs taken out.
    pub(crate) fn redact(&self, text: &str) -> String {
        redact(&text.replace(&self.folder().display().to_string(), "[folder]"))
    }
}

/// A time in the past for records whose listing is compared.
pub(crate) const CREATED: &str = "2026-01-31T12:00:00Z";

/// `h` is a hexadecimal digit, `d` a decimal one.
const PATTERNS: &[(&str, &str)] = &[
    ("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "[id]"),
    ("hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh", "[hash]"),
    ("dddd-dd-ddTdd:dd:dd.dddZ", "[time]"),
    ("dddd-dd-dd dd:dd", "[time]"),
];

fn redact(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hit = PATTERNS.iter().find(|(pattern, _)| fits(pattern, rest));
        // The times that tests give are the same in every run.
        let fixed = rest.starts_with("2026-01-31");
        match hit.filter(|_| !fixed) {
            Some((pattern, word)) => {
                out.push_str(word);
                rest = &rest[pattern.len()..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn fits(pattern: &str, text: &str) -> bool {
    pattern.len() <= text.len()
        && pattern.bytes().zip(text.bytes()).all(|(p, t)| match p {
            b'h' => t.is_ascii_hexdigit(),
            b'd' => t.is_ascii_digit(),
            _ => p == t,
        })
}
