//! Accepts connections, within the limits, until it is told to stop.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connections::{Connection, Connections, Crowded};
use super::limits::HttpLimits;

/// How long to wait when the system gives no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections that are told at the same time why they are refused; others are just closed.
const REFUSALS: usize = 16;
/// How long a refused client has to read that it is.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves until `stop` returns; then no connection is accepted any more, and requests that are
/// being worked on have some time to end.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    limits: HttpLimits,
    stop: impl Future<Output = ()>,
) {
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let (stopping, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            // Its handlers must be there before the first client is answered.
            biased;
            () = &mut stop => break,
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(_) => {
                // Most likely too many files are open: a connection less makes room.
                connections.evict();
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match connections.open(peer.ip()) {
            Ok(connection) => {
                let (router, limits, stopped) = (router.clone(), limits.clone(), stopped.clone());
                tasks.spawn(converse(stream, connection, router, limits, stopped));
            }
            Err(crowded) => {
                if let Ok(permit) = refusals.clone().try_acquire_owned() {
                    tasks.spawn(async move {
                        let _ = timeout(REFUSAL_TIMEOUT, refuse(stream, crowded)).await;
                        drop(permit);
                    });
                }
            }
        }
    }
    drop(listener);
    stopping.send_replace(true);
    connections.evict_all();
    let ended = async { while tasks.join_next().await.is_some() {} };
    // Tasks that are left are ended with their set.
    let _ = timeout(limits.stop_timeout, ended).await;
}

/// Whether it is one client's fault, so that the next can be accepted at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Answers the requests of one connection, as long as it may stay.
async fn converse(
    stream: TcpStream,
    connection: Connection,
    router: Router,
    limits: HttpLimits,
    mut stopped: watch::Receiver<bool>,
) {
    // Answers are written at once; waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let connection = Arc::new(connection);
    let (inner, own) = (TowerToHyperService::new(router), connection.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(own.clone());
        inner.call(request)
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
            // A client that hangs up or sends no HTTP is nothing to report.
            _ = talk.as_mut() => return,
            () = connection.closing() => return,
            _ = stopped.wait_for(|stopped| *stopped), if !is_stopping => {
                is_stopping = true;
                talk.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Tells a client that it is one too many, and waits until it has read that.
async fn refuse(mut stream: TcpStream, crowded: Crowded) -> io::Result<()> {
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
