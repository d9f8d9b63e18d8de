use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::routing::post;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use mnemon_core::{Tenant, Time};
use mnemon_operations::operation::routes::endpoints;

use super::*;

const KEY: &str = "0123456789abcdef";
/// The lock of a server with the key.
fn lock() -> Arc<Lock> {
    let lock = Lock::new(Tenant::default());
    Arc::new(lock.key(Some(Secret::new(KEY))))
}

/// Long enough for the slowest machine: waiting ends as soon as something happens.
const PATIENCE: Duration = Duration::from_secs(300);
/// A limit that no test reaches.
const NEVER: Duration = Duration::from_secs(3600);
/// A limit that a test waits for.
const SOON: Duration = Duration::from_millis(100);

/// A server with a key. `/echo` answers at once, `/wait` when it is let go.
struct Server {
    address: SocketAddr,
    /// Has a permit for each request that has begun to wait.
    begun: Arc<Semaphore>,
    release: Arc<Notify>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    /// With limits that nothing reaches but what the test shrinks.
    async fn start(shrink: impl FnOnce(&mut HttpLimits)) -> Self {
        let mut limits = HttpLimits {
            head_timeout: NEVER,
            body_timeout: NEVER,
            request_timeout: NEVER,
            ..HttpLimits::default()
        };
        shrink(&mut limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, release) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
        let (begin, go) = (begun.clone(), release.clone());
        let wait = move || async move {
            begin.add_permits(1);
            go.notified().await;
            "done"
        };
        let router = Router::new()
            .route("/echo", post(|body: String| async move { body }))
            .route("/wait", post(wait));
        let hosts = Hosts::new(address.ip(), &[]).unwrap();
        let gate = Gate::new(hosts, Origins::default(), lock(), limits.clone());
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        let task = tokio::spawn(server::serve(
            listener,
            gated(router, gate, Arc::new(Metrics::new(Arc::default()))),
            Arc::new(Connections::new(&limits)),
            limits,
            None,
            stopped,
        ));
        Self {
            address,
            begun,
            release,
            stop: Some(stop),
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection with this much sent.
    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// The answer to a request of somebody who has the key.
    async fn ask(&self, path: &str, body: &str) -> String {
        let text = request(path, body.len(), true) + body;
        answer(&mut self.send(&text).await).await
    }

    /// That somebody who has the key is served, though a limit of the test may end a connection of
    /// theirs when the machine is slow.
    async fn serves(&self) {
        let mut said = String::new();
        while !said.starts_with("HTTP/1.1 200 ") {
            said = self.ask("/echo", "tea").await;
            assert!(["", "HTTP/1.1 503", "HTTP/1.1 200"].contains(&said.get(..12).unwrap_or("")));
        }
    }

    /// A request that waits to be let go.
    async fn waiting(&self, body: &str) -> TcpStream {
        let text = request("/wait", body.len(), true) + body;
        let stream = self.send(&text).await;
        let begun = timeout(PATIENCE, self.begun.acquire()).await;
        begun.unwrap().unwrap().forget();
        stream
    }
}

fn request(path: &str, length: usize, has_key: bool) -> String {
    let key = match has_key {
        true => format!("Authorization: Bearer {KEY}\r\n"),
        false => String::new(),
    };
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{key}Content-Length: {length}\r\n\r\n")
}

/// All that comes, until the headers and the length that they say are there or nothing more comes.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut part = [0; 4096];
    loop {
        let read = timeout(PATIENCE, stream.read(&mut part)).await.unwrap();
        let Ok(count @ 1..) = read else {
            return text;
        };
        text.push_str(std::str::from_utf8(&part[..count]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
        if length.is_some_and(|length: usize| body.len() >= length) {
            return text;
        }
    }
}

/// That the server closes the connection without a further word.
async fn closes(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .unwrap();
    let is_reset = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset;
    assert!(read.as_ref().err().is_none_or(is_reset), "{read:?}");
    assert_eq!(String::from_utf8_lossy(&rest), "");
}

#[track_caller]
fn check(answer: &str, status: u16) {
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    let is_crowded = matches!(status, 429 | 503);
    let has_retry = answer.to_lowercase().contains("retry-after: 1\r\n");
    assert_eq!(has_retry, is_crowded, "{answer}");
}

#[test]
fn the_limits_are_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let limits = HttpLimits::default();
    let mib = 1024 * 1024;
    for row in [
        format!("| open connections | {} |", limits.connections),
        format!("network) | {} |", limits.address_connections),
        format!("| requests at the same time | {} |", limits.requests),
        format!("headers | {} KiB |", limits.head_bytes / 1024),
        format!("| one request body | {} MiB |", limits.body_bytes / mib),
        format!("may only read | {} MiB |", limits.read_body_bytes / mib),
        format!("values in a JSON body | {} |", limits.body_values),
        format!("of one key | {} |", limits.caller_listeners),
        format!("of one tenant | {} |", limits.tenant_listeners),
        format!("| {} MiB | 503 |", limits.bodies_bytes / mib),
        format!("idle connection | {} s |", limits.head_timeout.as_secs()),
        format!("body is complete | {} s |", limits.body_timeout.as_secs()),
        format!(
            "answer is complete | {} s |",
            limits.request_timeout.as_secs()
        ),
        format!("server stops | {} s |", limits.stop_timeout.as_secs()),
    ] {
        assert!(docs.contains(&row), "docs/mcp.md lacks: {row}");
    }
    assert!(limits.address_connections < limits.requests);
    assert!(limits.requests < limits.connections);
}

#[tokio::test]
async fn headers_that_do_not_end_end_the_connection() {
    let server = Server::start(|limits| limits.head_timeout = SOON).await;
    closes(server.connect().await).await;
    closes(server.send("POST /echo HTTP/1.1\r\nHost: local").await).await;
    // One that dribbles is not better off.
    let mut slow = server.send("POST /echo HTTP/1.1\r\n").await;
    let dribble = async {
        while slow.write_all(b"X-A: b\r\n").await.is_ok() {
            tokio::time::sleep(SOON / 10).await;
        }
    };
    timeout(PATIENCE, dribble).await.unwrap();
    // Nor is one that sent a request and then nothing more.
    let mut idle = server.send(&(request("/echo", 3, true) + "tea")).await;
    answer(&mut idle).await;
    closes(idle).await;
    server.serves().await;
}

#[tokio::test]
async fn headers_that_are_too_long_are_refused() {
    let server = Server::start(|limits| limits.head_bytes = 500).await;
    let long = "x".repeat(600);
    let text = format!("POST /echo HTTP/1.1\r\nHost: localhost\r\nX-A: {long}\r\n\r\n");
    check(&answer(&mut server.send(&text).await).await, 431);
    check(&server.ask("/echo", "tea").await, 200);
}

#[tokio::test]
async fn a_body_that_does_not_end_is_refused() {
    let server = Server::start(|limits| (limits.body_timeout, limits.requests) = (SOON, 1)).await;
    let mut slow = server.send(&(request("/echo", 10, true) + "tea")).await;
    check(&answer(&mut slow).await, 408);
    closes(slow).await;
    server.serves().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = Server::start(|limits| limits.body_bytes = 100).await;
    check(&server.ask("/echo", &"x".repeat(100)).await, 200);
    check(&server.ask("/echo", &"x".repeat(101)).await, 413);
    let head = request("/echo", 0, true).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let long = format!("{head}65\r\n{}\r\n0\r\n\r\n", "x".repeat(101));
    check(&answer(&mut server.send(&long).await).await, 413);
    let broken = head + "nonsense\r\n";
    check(&answer(&mut server.send(&broken).await).await, 400);
}

#[tokio::test]
async fn without_the_key_nothing_is_read_or_kept() {
    let server = Server::start(|limits| limits.requests = 1).await;
    // The only place for a request is taken.
    let busy = server.waiting("").await;
    // The body never comes, and is not waited for.
    for length in [1000, 1 << 40] {
        let mut stream = server.send(&request("/echo", length, false)).await;
        check(&answer(&mut stream).await, 401);
    }
    check(&server.ask("/echo", "tea").await, 503);
    server.release.notify_one();
    drop(busy);
}

#[tokio::test]
async fn connections_without_a_key_keep_nobody_out() {
    let server =
        Server::start(|limits| (limits.connections, limits.address_connections) = (8, 4)).await;
    let mut silent = Vec::new();
    for round in 0..40 {
        silent.push(match round % 4 {
            0 => server.connect().await,
            1 => server.send("POST /echo HTTP/1.1\r\n").await,
            // Nor does a body that does not end.
            2 => server.send(&(request("/echo", 9, true) + "x")).await,
            _ => server.send(&request("/echo", 1000, false)).await,
        });
        check(&server.ask("/echo", "tea").await, 200);
    }
    // The first ones had to go, although no time limit ends them.
    for mut stream in silent.into_iter().take(20) {
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_busy_connection_stays_and_the_next_is_told_to_come_again() {
    let server =
        Server::start(|limits| (limits.connections, limits.address_connections) = (8, 3)).await;
    let mut busy = Vec::new();
    for _ in 0..3 {
        busy.push(server.waiting("").await);
    }
    for _ in 0..5 {
        check(&server.ask("/echo", "tea").await, 429);
    }
    for stream in &mut busy {
        server.release.notify_one();
        check(&answer(stream).await, 200);
    }
    check(&server.ask("/echo", "tea").await, 200);
}

/// Other systems have no second address on the loopback interface.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_crowd_of_one_address_leaves_room_for_others() {
    let server =
        Server::start(|limits| (limits.connections, limits.address_connections) = (4, 2)).await;
    let from = async |last: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        let own: IpAddr = [127, 0, 0, last].into();
        socket.bind((own, 0).into()).unwrap();
        let mut stream = socket.connect(server.address).await.unwrap();
        let text = request("/echo", 3, true) + "tea";
        stream.write_all(text.as_bytes()).await.unwrap();
        answer(&mut stream).await
    };
    let busy = [server.waiting("").await, server.waiting("").await];
    check(&from(1).await, 429);
    check(&from(2).await, 200);
    check(&from(3).await, 200);
    drop(busy);
}

#[tokio::test]
async fn no_more_requests_are_worked_on_than_the_limit_says() {
    let server = Server::start(|limits| limits.requests = 2).await;
    let (mut one, mut two) = (server.waiting("").await, server.waiting("").await);
    for _ in 0..3 {
        check(&server.ask("/echo", "tea").await, 503);
    }
    server.release.notify_waiters();
    check(&answer(&mut one).await, 200);
    check(&answer(&mut two).await, 200);
    check(&server.ask("/echo", "tea").await, 200);
}

#[tokio::test]
async fn all_bodies_together_are_bounded() {
    let server =
        Server::start(|limits| (limits.body_bytes, limits.bodies_bytes) = (4096, 6144)).await;
    let body = "x".repeat(4096);
    let mut busy = server.waiting(&body).await;
    check(&server.ask("/echo", &body).await, 503);
    check(&server.ask("/echo", &"x".repeat(1024)).await, 200);
    server.release.notify_one();
    check(&answer(&mut busy).await, 200);
    check(&server.ask("/echo", &body).await, 200);
}

#[tokio::test]
async fn a_request_that_takes_too_long_ends_with_its_connection() {
    let server =
        Server::start(|limits| (limits.request_timeout, limits.requests) = (SOON, 1)).await;
    closes(server.waiting("").await).await;
    // Its place is free again.
    server.serves().await;
}

#[tokio::test]
async fn a_server_that_is_stopped_ends_what_it_works_on() {
    let mut server = Server::start(|limits| limits.stop_timeout = NEVER).await;
    let silent = server.connect().await;
    let mut busy = server.waiting("").await;
    server.stop.take().unwrap().send(()).unwrap();
    closes(silent).await;
    while let Ok(more) = TcpStream::connect(server.address).await {
        closes(more).await;
    }
    server.release.notify_one();
    check(&answer(&mut busy).await, 200);
    timeout(PATIENCE, server.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_is_stopped_does_not_wait_for_ever() {
    let mut server = Server::start(|limits| limits.stop_timeout = SOON).await;
    let busy = server.waiting("").await;
    server.stop.take().unwrap().send(()).unwrap();
    timeout(PATIENCE, server.task).await.unwrap().unwrap();
    closes(busy).await;
}

#[test]
fn other_machines_need_a_key() {
    let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let none = Access::default();
    let open_lock = Lock::new(Tenant::default());
    assert!(none.check(local, &open_lock).is_ok());
    let said = none.check(open, &open_lock).unwrap_err().to_string();
    assert!(said.contains("MNEMON_API_KEY"), "{said}");
    let with = |key: &str| Access {
        key: Some(Secret::new(key)),
        ..Access::default()
    };
    assert!(with("0123456789abcdef").check(open, &lock()).is_ok());
    assert!(with("short").check(local, &lock()).is_err());
}

#[test]
fn only_the_key_opens() {
    let shown = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        let now = Time::from_millis(0).unwrap();
        futures::executor::block_on(lock().caller(&headers, now)).is_ok()
    };
    assert!(shown("Bearer 0123456789abcdef"));
    assert!(shown("bearer 0123456789abcdef"));
    for wrong in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer 0123456789abcdeg",
        "Basic 0123456789abcdef",
    ] {
        assert!(!shown(wrong), "{wrong}");
    }
    let (lock, headers) = (lock(), HeaderMap::new());
    let none = lock.caller(&headers, Time::from_millis(0).unwrap());
    assert!(futures::executor::block_on(none).is_err());
}

#[tokio::test]
async fn overload_is_answered_at_once() {
    let server = Server::start(|limits| limits.requests = 4).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(server.waiting("").await);
    }
    let mut taken = Vec::new();
    for _ in 0..31 {
        let began = std::time::Instant::now();
        let said = server.ask("/echo", "tea").await;
        taken.push(began.elapsed());
        check(&said, 503);
    }
    taken.sort();
    // The median: a busy machine may hold up single ones.
    assert!(taken[15] < Duration::from_millis(50), "{taken:?}");
    server.release.notify_waiters();
    for stream in &mut waiting {
        check(&answer(stream).await, 200);
    }
}

#[tokio::test]
async fn values_of_json_are_counted_and_texts_are_not() {
    let server = Server::start(|limits| limits.body_values = 100).await;
    let send = async |body: String| {
        let head = request("/echo", body.len(), true);
        let head = head.replace("\r\n\r\n", "\r\nContent-Type: application/json\r\n\r\n");
        answer(&mut server.send(&(head + &body)).await).await
    };
    let text = "a, [b], {c: \\\"d\\\"} ".repeat(100);
    let said = send(format!("{{\"text\": \"{text}\"}}")).await;
    check(&said, 200);
    check(&send(format!("[{}1]", "1,".repeat(98))).await, 200);
    let said = send(format!("[{}1]", "1,".repeat(100))).await;
    check(&said, 413);
    assert!(said.contains("more than 100 values"), "{said}");
}

/// The only thread of this runtime, on which operations run, is held by the client.
#[tokio::test]
async fn requests_are_read_while_operations_hold_their_threads() {
    use std::io::{Read, Write};
    let connecting = Connecting::start().unwrap();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let (listener, address) = connecting.run(listen(local)).await.unwrap().unwrap();
    let limits = HttpLimits::default();
    let hosts = Hosts::new(address.ip(), &[]).unwrap();
    let gate = Gate::new(hosts, Origins::default(), lock(), limits.clone());
    let router = Router::new().route("/echo", post(|body: String| async move { body }));
    let router = gated(router, gate, Arc::new(Metrics::new(Arc::default())));
    let connections = Arc::new(Connections::new(&limits));
    let serving = server::serve(
        listener,
        router,
        connections,
        limits,
        None,
        std::future::pending(),
    );
    let mut serving = std::pin::pin!(connecting.run(serving));
    assert!(futures::poll!(&mut serving).is_pending());
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "POST /echo HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\n\
         Connection: close\r\nContent-Length: 3\r\n\r\ntea"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("tea"), "{answer}");
}

/// While few requests are carried out, reads run on the threads that read requests. Changes, other reads
/// and those that have to wait are for the threads of the work.
#[test]
fn few_reads_run_where_their_requests_are_read() {
    let runtime = |name: &str| {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        threads.worker_threads(1).thread_name(name).build().unwrap()
    };
    let (work, reading) = (runtime("work"), runtime("reading"));
    let api = work.block_on(async {
        let config = Config::for_store("ram:");
        let memory = wiring::open(&config).unwrap().memory;
        Arc::new(api::Api::new(memory.into(), config))
    });
    let thread_of = |path: &str, waits: bool| {
        let own = api.clone();
        let mut endpoints = endpoints().into_iter();
        let endpoint = endpoints.find(|endpoint| endpoint.route.path == path);
        let endpoint = endpoint.unwrap();
        let done = reading.spawn(async move {
            let work = async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                Ok(std::thread::current().name().map(str::to_owned))
            };
            own.carry_out(&endpoint, work).await.unwrap()
        });
        reading.block_on(done).unwrap().unwrap()
    };
    assert_eq!(thread_of("/v1/search", false), "reading");
    assert_eq!(thread_of("/v1/search", true), "work");
    assert_eq!(thread_of("/v1/records", false), "work");
    assert_eq!(
        api.in_progress
            .swap(api.max_inline_reads, Ordering::Relaxed),
        0
    );
    assert_eq!(thread_of("/v1/search", false), "work");
    api.in_progress
        .store(api.max_inline_reads - 1, Ordering::Relaxed);
    assert_eq!(thread_of("/v1/search", false), "reading");
}

/// Work whose client has hung up goes on, and so counts as a request in progress.
#[tokio::test]
async fn work_counts_until_it_ends_also_without_its_client() {
    let config = Config::for_store("ram:");
    let memory = wiring::open(&config).unwrap().memory;
    let api = Arc::new(api::Api::new(memory.into(), config));
    let (begun, begins) = oneshot::channel();
    let (end, ends) = oneshot::channel::<()>();
    let own = api.clone();
    let request = tokio::spawn(async move {
        let mut endpoints = endpoints().into_iter();
        let endpoint = endpoints.find(|endpoint| endpoint.route.path == "/v1/records");
        let work = async move {
            begun.send(()).unwrap();
            ends.await.unwrap();
            Ok(())
        };
        own.carry_out(&endpoint.unwrap(), work).await
    });
    begins.await.unwrap();
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!(api.in_progress.load(Ordering::Relaxed), 1);
    end.send(()).unwrap();
    api.finished().await;
    assert_eq!(api.in_progress.load(Ordering::Relaxed), 0);
}
