//! A `milvus-lite` server for tests.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The program that `./scripts/milvus` has installed.
const PROGRAM: &str = "MNEMON_MILVUS_LITE";

/// Runs the server until its input ends, as it does when the test process ends in whichever way.
const UNTIL_INPUT_ENDS: &str =
    r#"exec 3<&0; "$@" </dev/null & pid=$!; cat <&3 >/dev/null; kill -9 $pid; wait $pid"#;

/// A server with its data. It is killed, not stopped.
pub(crate) struct Lite {
    child: Child,
    address: String,
}

impl Lite {
    /// The address of the server that tests share.
    pub(crate) fn shared() -> &'static str {
        static SHARED: OnceLock<(Lite, TempDir)> = OnceLock::new();
        let (shared, _) = SHARED.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            (Lite::start(folder.path()), folder)
        });
        &shared.address
    }

    /// A server over this folder.
    pub(crate) fn start(folder: &Path) -> Self {
        let program = std::env::var_os(PROGRAM)
            .unwrap_or_else(|| panic!("{PROGRAM} is not set: run ./scripts/milvus"));
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let mut child = Command::new("sh")
            .args(["-c", UNTIL_INPUT_ENDS, "sh"])
            .arg(program)
            .args(["server", "--host", "127.0.0.1", "--port", &port])
            .arg("--data-dir")
            .arg(folder)
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.find(|line| line.as_ref().is_ok_and(|it| it.contains("listening")));
        assert!(ready.is_some(), "milvus-lite did not start");
        Self {
            child,
            address: format!("127.0.0.1:{port}"),
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Lite {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // The shell ends after the server.
        let _ = self.child.wait();
    }
}
