//! Accepts connections, within the limits, until the server stops.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::connections::{Connection, Connections, Crowded};
use super::limits::HttpLimits;
use super::tls::Tls;

/// How long to wait when the system gives no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long the handshake of TLS may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that are told at the same time why they are refused; others are just closed.
const REFUSALS: usize = 16;
/// How long a refused client has to read that it is.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long requests that are on their way are still waited for after the server was asked to stop.
/// Closing at once would reset connections whose request has been sent but not read.
const LAST_REQUESTS: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Each answer ends its connection.
    Closing,
    /// No request is read any more.
    Closed,
}

/// Serves until `stop` returns. Then requests that are on their way are still answered, no further
/// connection is accepted, and requests that are being worked on have some time to end.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    limits: HttpLimits,
    tls: Option<Arc<Tls>>,
    stop: impl Future<Output = ()>,
) {
    let (set_phase, phase) = watch::channel(Phase::Open);
    let stop_timeout = limits.stop_timeout;
    let mut guests = Guests {
        connections,
        refusals: Arc::new(Semaphore::new(REFUSALS)),
        router,
        limits,
        tls,
        phase,
        tasks: JoinSet::new(),
    };
    guests.accept(&listener, stop).await;
    set_phase.send_replace(Phase::Closing);
    guests.accept(&listener, sleep(LAST_REQUESTS)).await;
    // Connections that the system has accepted already would be reset with the listener.
    while let Some(Ok((stream, peer))) = listener.accept().now_or_never() {
        guests.admit(stream, peer);
    }
    drop(listener);
    let Guests {
        connections,
        mut tasks,
        ..
    } = guests;
    let mut ended = pin!(async { while tasks.join_next().await.is_some() {} });
    if timeout(LAST_REQUESTS, &mut ended).await.is_err() {
        set_phase.send_replace(Phase::Closed);
        connections.evict_all();
        // Tasks that are left are ended with their set.
        let _ = timeout(stop_timeout, ended).await;
    }
}

/// Those who are connected, and what lets them in.
struct Guests {
    connections: Arc<Connections>,
    refusals: Arc<Semaphore>,
    router: Router,
    limits: HttpLimits,
    tls: Option<Arc<Tls>>,
    phase: watch::Receiver<Phase>,
    tasks: JoinSet<()>,
}

impl Guests {
    /// Lets clients in until `end` returns.
    async fn accept(&mut self, listener: &TcpListener, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut end => return,
                Some(_) = self.tasks.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if is_of_one_connection(&error) => {}
                Err(_) => {
                    // Most likely too many files are open: a connection less makes room.
                    self.connections.evict();
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        let tls = self.tls.as_ref().map(|tls| tls.acceptor());
        match self.connections.open(peer.ip()) {
            Ok(connection) => {
                let (router, limits) = (self.router.clone(), self.limits.clone());
                let phase = self.phase.clone();
                self.tasks.spawn(async move {
                    // Answers are written at once; waiting for more to send would only delay them.
                    let _ = stream.set_nodelay(true);
                    match tls {
                        Some(tls) => {
                            encrypted(stream, tls, connection, router, limits, phase).await
                        }
                        None => converse(stream, connection, router, limits, phase).await,
                    }
                });
            }
            Err(crowded) => {
                if let Ok(permit) = self.refusals.clone().try_acquire_owned() {
                    self.tasks.spawn(async move {
                        let refusal = async {
                            match tls {
                                Some(tls) => refuse(tls.accept(stream).await?, crowded).await,
                                None => refuse(stream, crowded).await,
                            }
                        };
                        let _ = timeout(REFUSAL_TIMEOUT, refusal).await;
                        drop(permit);
                    });
                }
            }
        }
    }
}

/// Whether it is one client's fault, so that the next can be accepted at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// The same as [`converse`] after the handshake, which has a time limit. The connection may be closed
/// to make room meanwhile.
async fn encrypted(
    stream: TcpStream,
    tls: TlsAcceptor,
    connection: Connection,
    router: Router,
    limits: HttpLimits,
    phase: watch::Receiver<Phase>,
) {
    let stream = tokio::select! {
        shaken = timeout(HANDSHAKE_TIMEOUT.min(limits.head_timeout), tls.accept(stream)) => shaken,
        () = connection.closing() => return,
    };
    // A client that speaks no TLS is nothing to report.
    if let Ok(Ok(stream)) = stream {
        converse(stream, connection, router, limits, phase).await;
    }
}

/// Answers the requests of one connection, as long as it may stay.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: Connection,
    router: Router,
    limits: HttpLimits,
    mut phase: watch::Receiver<Phase>,
) {
    let connection = Arc::new(connection);
    let (inner, own, now) = (
        TowerToHyperService::new(router),
        connection.clone(),
        phase.clone(),
    );
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(own.clone());
        let (answer, now) = (inner.call(request), now.clone());
        async move {
            let mut answer: Response<Body> = answer.await?;
            if *now.borrow() != Phase::Open {
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut talk = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_timeout)
            .max_header_size(limits.head_bytes)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // A request that has arrived is read before the connection is closed.
            biased;
            // A client that hangs up or sends no HTTP is nothing to report.
            _ = talk.as_mut() => return,
            () = connection.closing() => return,
            _ = phase.wait_for(|phase| *phase == Phase::Closed), if !is_stopping => {
                is_stopping = true;
                talk.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Tells a client that it is one too many, and waits until it has read that.
async fn refuse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    crowded: Crowded,
) -> io::Result<()> {
    let (status, said) = match crowded {
        Crowded::ByAddress => (
            "429 Too Many Requests",
            "too many connections of this address are busy; try again in a second\n",
        ),
        Crowded::ByAll => (
            "503 Service Unavailable",
            "too many connections are busy; try again in a second\n",
        ),
    };
    let length = said.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nRetry-After: 1\r\nConnection: close\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{said}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing a connection with unread bytes would take the answer away from the client.
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}
