//! A `milvus-lite` server for tests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

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

/// Drops the indexes with this metric from the collections of an index, by the official client. Returns
/// how many.
pub(crate) fn drop_indexes(url: &str, metric: &str) -> usize {
    const SCRIPT: &str = "import sys; from pymilvus import MilvusClient
_, address, name, metric = sys.argv
client, dropped = MilvusClient(uri=address), 0
for collection in client.list_collections():
    for index in client.list_indexes(collection) if collection.startswith(name + '_g') else []:
        if client.describe_index(collection, index)['metric_type'] == metric:
            client.release_collection(collection)
            client.drop_index(collection, index)
            dropped += 1
print(dropped)";
    by_official_client(url, SCRIPT, metric)
}

/// Deletes the vectors of the record with this id, by the official client. Returns from how many
/// collections.
pub(crate) fn delete_vectors(url: &str, id: &str) -> usize {
    const SCRIPT: &str = "import sys; from pymilvus import MilvusClient
_, address, name, id = sys.argv
client, deleted = MilvusClient(uri=address), 0
for collection in client.list_collections():
    if collection.startswith(name + '_g') and '_v' in collection[len(name) + 2:]:
        client.delete(collection, filter=f'id == \"{id}\"')
        deleted += 1
print(deleted)";
    by_official_client(url, SCRIPT, id)
}

/// The number that a script prints, which gets the address, the name of the index and a word.
fn by_official_client(url: &str, script: &str, word: &str) -> usize {
    let place = url.strip_prefix("milvus://").unwrap();
    let (address, name) = place.split_once('/').unwrap();
    let program = std::env::var(PROGRAM).unwrap();
    let ran = Command::new(Path::new(&program).with_file_name("python"))
        .args(["-c", script, &format!("http://{address}"), name, word])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&ran.stderr).into_owned();
    said.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{said}{wrong}"))
}

/// A server that is killed in the middle of a request.
pub(crate) struct Doomed {
    server: Arc<Mutex<Option<Lite>>>,
    address: String,
}

impl Doomed {
    /// Forwards requests until they have so many bytes, and then kills the server.
    pub(crate) fn after(bytes: u64, server: Lite) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let to = server.address.clone();
        let server = Arc::new(Mutex::new(Some(server)));
        let victim = server.clone();
        thread::spawn(move || {
            let mut left = bytes;
            for client in listener.incoming() {
                let (client, Ok(upstream)) = (client.unwrap(), TcpStream::connect(&to)) else {
                    continue;
                };
                forward(&client, &upstream, &mut left);
                if left == 0 {
                    victim.lock().unwrap().take();
                }
                let _ = client.shutdown(Shutdown::Both);
            }
        });
        Self { server, address }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Kills the server if it still runs; the answer is whether it did.
    pub(crate) fn kill(self) -> bool {
        self.server.lock().unwrap().take().is_some()
    }
}

/// Forwards a connection until it ends, or no bytes are left.
fn forward(mut client: &TcpStream, mut upstream: &TcpStream, left: &mut u64) {
    let (mut answers, mut reader) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || io::copy(&mut answers, &mut reader));
    let mut part = [0; 1024];
    while let Ok(length @ 1..) = client.read(&mut part) {
        let most = usize::try_from(*left).unwrap_or(usize::MAX);
        let length = length.min(most);
        *left -= length as u64;
        if upstream.write_all(&part[..length]).is_err() || *left == 0 {
            return;
        }
    }
}
