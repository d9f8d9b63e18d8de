//! Telling other servers about commits, and hearing about theirs, by NOTIFY and LISTEN.
//!
//! A notification is sent after the commit and not in its transaction: NOTIFY takes a lock of the
//! whole database server at commit, which would make all tenants wait for each other. Commits that
//! follow each other closely share a notification. One that is lost does no harm: listeners also
//! compare the number of the newest change, only less often.
//!
//! The listening connection is opened when something first listens. Another connection sends it a
//! message every few seconds: when that is not heard, as behind PgBouncer in transaction mode, the
//! store does not claim to hear others, and listeners ask every second. A message that it sent itself
//! would be heard there, too.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use mnemon_core::{ChangeHandler, Tenant};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::AsyncMessage;

use super::errors::Failure;
use super::pool::{Call, Pool};

/// The pause after a notification: commits in the meantime share the next one.
const COALESCE: Duration = Duration::from_millis(5);
/// How often the listening connection is checked.
const CHECK: Duration = Duration::from_secs(5);
/// The first and the longest pause before another try to listen.
const RETRY: Duration = Duration::from_millis(100);
const MOST_RETRY: Duration = Duration::from_secs(10);
/// How long the end of the process waits for the last notification.
const LAST: Duration = Duration::from_secs(1);

/// Wakes listeners of other servers, and those of this one.
#[derive(Clone)]
pub(super) struct Wake {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Arc<Pool>,
    /// Tells messages of this process from those of others.
    token: String,
    unsent: Mutex<Unsent>,
    all_sent: Condvar,
    handlers: Mutex<Vec<Arc<ChangeHandler>>>,
    hears: AtomicBool,
}

/// Tenants that were written for since the last notification.
#[derive(Default)]
struct Unsent {
    tenants: BTreeSet<Tenant>,
    is_sending: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self {
            shared: Arc::new(Shared {
                pool,
                token: format!("{:016x}", fastrand::u64(..)),
                unsent: Mutex::default(),
                all_sent: Condvar::new(),
                handlers: Mutex::default(),
                hears: AtomicBool::new(false),
            }),
        }
    }

    /// Tells other servers, soon, that something was committed for the tenant.
    pub(super) fn committed(&self, tenant: &Tenant) {
        let mut unsent = lock(&self.shared.unsent);
        unsent.tenants.insert(tenant.clone());
        if std::mem::replace(&mut unsent.is_sending, true) {
            return;
        }
        drop(unsent);
        let shared = Arc::clone(&self.shared);
        self.shared.pool.runtime.spawn(async move {
            while let Some(tenants) = shared.take_unsent() {
                // If it fails, listeners find the change by its number.
                let _ = AssertUnwindSafe(shared.notify(tenants))
                    .catch_unwind()
                    .await;
                sleep(COALESCE).await;
            }
        });
    }

    /// Waits until the notifications were sent.
    pub(super) fn finish(&self) {
        let unsent = lock(&self.shared.unsent);
        let wait = self
            .shared
            .all_sent
            .wait_timeout_while(unsent, LAST, |unsent| unsent.is_sending);
        drop(wait);
    }

    pub(super) fn listen(&self, handler: ChangeHandler) {
        let mut handlers = lock(&self.shared.handlers);
        handlers.push(Arc::new(handler));
        if handlers.len() == 1 {
            let shared = Arc::clone(&self.shared);
            self.shared
                .pool
                .runtime
                .spawn(async move { shared.keep_hearing().await });
        }
    }

    pub(super) fn hears(&self) -> bool {
        self.shared.hears.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// `None` if there is nothing to send, which ends the sending task.
    fn take_unsent(&self) -> Option<Vec<String>> {
        let mut unsent = lock(&self.unsent);
        let tenants = std::mem::take(&mut unsent.tenants);
        unsent.is_sending = !tenants.is_empty();
        if !unsent.is_sending {
            self.all_sent.notify_all();
            return None;
        }
        let tenants = tenants.into_iter();
        Some(tenants.map(|tenant| tenant.as_str().to_owned()).collect())
    }

    /// Sends a message for each of these tenants; an empty name makes a check of the own connection.
    async fn notify(&self, tenants: Vec<String>) -> Result<(), Failure> {
        // It need not survive a crash, so it does not wait for the disk.
        let sql = "SELECT set_config('synchronous_commit', 'off', true),
                pg_notify('mnemon', $1 || tenant)
             FROM unnest($2::text[]) AS t(tenant)";
        let call = Call::new(sql).with(self.token.clone()).with(tenants);
        let mut lease = self.pool.take().await?;
        lease.all(call).await?;
        Ok(())
    }

    async fn keep_hearing(&self) {
        let mut pause = RETRY;
        loop {
            // The failure is not shown: calls of the store report what is wrong with the database.
            // After the panic of a handler it listens again, on another connection.
            let _ = AssertUnwindSafe(self.hear()).catch_unwind().await;
            if self.hears.swap(false, Ordering::Relaxed) {
                pause = RETRY;
            }
            sleep(pause).await;
            pause = (2 * pause).min(MOST_RETRY);
        }
    }

    /// Hears until the connection is lost.
    async fn hear(&self) -> Result<(), Failure> {
        let (client, mut connection) = self.pool.open().await?;
        let (sender, mut messages) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) =
                std::future::poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(notification) = message
                    && sender.send(notification.payload().to_owned()).is_err()
                {
                    break;
                }
            }
        });
        client.batch_execute("LISTEN mnemon").await?;
        loop {
            self.notify(vec![String::new()]).await?;
            let deadline = Instant::now() + CHECK;
            let mut is_heard = false;
            while let Ok(message) = timeout_at(deadline, messages.recv()).await {
                let Some(message) = message else {
                    return Ok(());
                };
                if message == self.token {
                    is_heard = true;
                    if !self.hears.swap(true, Ordering::Relaxed) {
                        // Messages may have been missed before.
                        self.call_handlers(None);
                    }
                } else if !message.starts_with(&self.token) {
                    let tenant = message.get(self.token.len()..);
                    let tenant = tenant.and_then(|tenant| Tenant::from_store(tenant).ok());
                    self.call_handlers(tenant.as_ref());
                }
            }
            if !is_heard {
                return Ok(());
            }
        }
    }

    fn call_handlers(&self, tenant: Option<&Tenant>) {
        let handlers = lock(&self.handlers).clone();
        for handler in handlers {
            handler(tenant);
        }
    }
}
