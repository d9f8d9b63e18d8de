//! When the server is told to stop.

/// Returns when the process is asked to end: by Ctrl-C, or by SIGTERM where there is such a thing. When
/// it is asked a second time, it ends at once.
pub async fn stop_signal() {
    asked_to_stop().await;
    tokio::spawn(async {
        asked_to_stop().await;
        // As a shell does for a process that a signal ended.
        std::process::exit(128 + 2);
    });
}

async fn asked_to_stop() {
    tokio::select! {
        () = interrupted() => {}
        () = terminated() => {}
    }
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut told) => {
            told.recv().await;
        }
        // The signal then ends the process as it always did.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

/// Returns when the process gets SIGHUP, where there is such a thing.
#[cfg(unix)]
pub(super) async fn hung_up() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::hangup()) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
pub(super) async fn hung_up() {
    std::future::pending().await
}
