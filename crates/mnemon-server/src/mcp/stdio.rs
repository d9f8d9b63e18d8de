//! MCP over standard input and output: one client, as long as it lives.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;

use super::handler::Handler;
use super::lines::Lines;
use super::served::Served;
use mnemon_operations::Error;

/// One message, in bytes: a content at its limit, and as much again several times for escapes.
const LINE_BYTES: usize = 64 * 1024 * 1024;
/// How often it is looked whether the client that started this is still there.
const LOOK: Duration = Duration::from_secs(2);

/// Serves until the input ends, or until the process that started this one is gone: a server
/// whose client crashed must not stay behind.
pub async fn serve(served: Served) -> Result<(), Error> {
    let (read, write) = stdio_pipes();
    let transport = Lines::new(read, write, LINE_BYTES);
    let served = Arc::new(served);
    // The greeting does not wait for it, and the first search need not.
    tokio::spawn(warm(served.clone()));
    let talk = async {
        let handler = Handler::in_order(served);
        let running = match handler.serve(transport).await {
            Ok(running) => running,
            // A client that leaves before it has said anything is no error.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(Error::Internal(format!("no MCP client: {error}"))),
        };
        match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Internal(format!("the MCP server stopped: {error}"))),
        }
    };
    tokio::select! {
        done = talk => done,
        () = orphaned() => Ok(()),
    }
}

/// Reads the index that searches need, so that the first call does not wait for it. An error is
/// left to the call that meets it again and can report it. Then embeds records without a vector.
async fn warm(served: Arc<Served>) {
    if let Ok(ctx) = served.ctx() {
        let _ = served.memory.records().warm(&ctx).await;
    }
    served.embed_missing().await;
}

/// Returns when the process that started this one is gone.
#[cfg(unix)]
async fn orphaned() {
    use std::os::unix::process::parent_id;
    let parent = parent_id();
    // Whoever was started by the first process of all, or has lost its parent already, is looked
    // after by somebody else.
    if parent <= 1 {
        return std::future::pending().await;
    }
    while parent_id() == parent {
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(not(unix))]
async fn orphaned() {
    let _ = LOOK;
    std::future::pending().await
}
