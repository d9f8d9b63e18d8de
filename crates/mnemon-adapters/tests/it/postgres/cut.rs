//! Connections that are lost, above all during a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use mnemon_core::{Batch, ErrorKind, IdempotencyKey, Op};

use super::{Role, database, note};
use crate::kit::{everything, grant, open, wait};

/// Nothing is cut.
const NEVER: u8 = 0;
/// The next commit does not reach the server.
const BEFORE: u8 = 1;
/// The next commit is done, but its answer does not reach the client.
const AFTER: u8 = 2;

/// Stands between the store and the server.
struct Proxy {
    port: u16,
    cut: Arc<AtomicU8>,
}

impl Proxy {
    fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicU8::new(NEVER));
        let armed = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&server).unwrap();
                forward(client.unwrap(), server, &armed);
            }
        });
        Self { port, cut }
    }

    /// Whether the cut was made.
    fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == NEVER
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn forward(client: TcpStream, server: TcpStream, armed: &Arc<AtomicU8>) {
    let swallow = Arc::new(AtomicU8::new(NEVER));
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (armed, swallowing) = (Arc::clone(armed), Arc::clone(&swallow));
    std::thread::spawn(move || {
        copy(from, to, |bytes| {
            if !contains(bytes, b"COMMIT\0") {
                return true;
            }
            match armed.swap(NEVER, Ordering::SeqCst) {
                BEFORE => false,
                mode => {
                    swallowing.store(mode, Ordering::SeqCst);
                    true
                }
            }
        });
    });
    std::thread::spawn(move || {
        let mut answered = Vec::new();
        copy_if(server, client, |bytes| {
            if swallow.load(Ordering::SeqCst) != AFTER {
                return Some(true);
            }
            answered.extend_from_slice(bytes);
            // The tag of the commit is the last word of the server.
            (!contains(&answered, b"COMMIT\0")).then_some(false)
        });
    });
}

/// Copies as long as `passes` allows it, then closes both sides.
fn copy(from: TcpStream, to: TcpStream, mut passes: impl FnMut(&[u8]) -> bool) {
    copy_if(from, to, |bytes| passes(bytes).then_some(true));
}

/// The same, and may swallow bytes.
fn copy_if(mut from: TcpStream, mut to: TcpStream, mut passes: impl FnMut(&[u8]) -> Option<bool>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
        && let Some(pass) = passes(&buffer[..length])
        && (!pass || to.write_all(&buffer[..length]).is_ok())
    {}
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// The URL through a proxy.
fn through_a_proxy(url: &str) -> (String, Proxy) {
    let (start, host) = url.rsplit_once('@').unwrap();
    let (server, rest) = host.split_once('/').unwrap();
    let proxy = Proxy::start(server.to_owned());
    let url = format!("{start}@127.0.0.1:{}/{rest}?sslmode=disable", proxy.port);
    (url, proxy)
}

#[test]
fn a_commit_whose_answer_is_lost_is_written_once() {
    let database = database!();
    let (url, proxy) = through_a_proxy(&database.url());
    let store = open(&url);
    wait(store.apply(&grant(), Batch::of(Op::put(note("first"))))).unwrap();
    let mut written = 1;
    for cut in [AFTER, BEFORE] {
        for key in [None, Some(format!("key {cut}"))] {
            let key = key.map(|name| IdempotencyKey {
                name,
                digest: "d".to_owned(),
            });
            proxy.cut.store(cut, Ordering::SeqCst);
            let record = note("tea");
            // With this expectation a second write would be a conflict.
            let batch = Batch::of(Op::append(record.clone())).with_key(key);
            let receipt = wait(store.apply(&grant(), batch.clone())).unwrap();
            assert!(proxy.has_cut());
            written += 1;
            assert_eq!(wait(store.newest_change(&grant())).unwrap(), written);
            let found = wait(store.get(&grant(), &[record.id])).unwrap().remove(0);
            assert_eq!(found.unwrap().version, 1);
            if batch.key.is_some() {
                let again = wait(store.apply(&grant(), batch)).unwrap();
                assert_eq!(again, receipt);
            }
        }
    }
    assert_eq!(everything(store.as_ref()).len() as u64, written);
}

/// Where it cannot be found out whether a group was committed: here it is forbidden to look.
#[test]
fn a_commit_of_unknown_outcome_is_settled_by_its_key_or_fails() {
    let database = database!();
    let role = Role::new(&database);
    let name = &role.name;
    database.run(&format!(
        "GRANT CREATE ON DATABASE {} TO {name}",
        database.name
    ));
    let (url, proxy) = through_a_proxy(&role.url());
    let store = open(&url);
    wait(store.apply(&grant(), Batch::of(Op::put(note("first"))))).unwrap();
    database.run(&format!("REVOKE SELECT ON mnemon.groups FROM {name}"));
    for cut in [AFTER, BEFORE] {
        proxy.cut.store(cut, Ordering::SeqCst);
        let key = IdempotencyKey {
            name: format!("key {cut}"),
            digest: "d".to_owned(),
        };
        let batch = Batch::of(Op::append(note("with a key"))).with_key(Some(key));
        wait(store.apply(&grant(), batch)).unwrap();
        assert!(proxy.has_cut());
    }
    assert_eq!(everything(store.as_ref()).len(), 3);
    proxy.cut.store(AFTER, Ordering::SeqCst);
    let batch = Batch::of(Op::append(note("without a key")));
    let error = wait(store.apply(&grant(), batch)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("idempotency key"), "{error}");
}

/// Idle and busy connections end when the server restarts.
#[test]
fn connections_that_the_server_ended_are_replaced() {
    let database = database!();
    let store = open(&database.url());
    let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for number in 0..5 {
        let record = note(&format!("n{number}"));
        wait(store.apply(&grant(), Batch::of(Op::put(record)))).unwrap();
        database.run(end_all);
        assert_eq!(everything(store.as_ref()).len(), number + 1);
        database.run(end_all);
    }
}

/// Writers go on while all connections are ended again and again; every acknowledged write is there
/// once.
#[test]
fn writers_survive_connections_that_end() {
    let database = database!();
    let store = open(&database.url());
    let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    std::thread::scope(|scope| {
        let (done, writes) = std::sync::mpsc::channel();
        for _ in 0..4 {
            let (done, store) = (done.clone(), &store);
            scope.spawn(move || {
                for _ in 0..50 {
                    let append = Batch::of(Op::append(note("tea")));
                    wait(store.apply(&grant(), append)).unwrap();
                    done.send(()).unwrap();
                }
            });
        }
        drop(done);
        for number in 0.. {
            if writes.recv().is_err() {
                break;
            }
            if number % 9 == 0 {
                database.run(end_all);
            }
        }
    });
    assert_eq!(everything(store.as_ref()).len(), 200);
    assert_eq!(wait(store.newest_change(&grant())).unwrap(), 200);
}
