//! Connections, each used by one call at a time, with their prepared statements.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use mnemon_core::{StoreError, Tenant};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Socket, Statement};

use super::errors::{self, Failure};
use super::tls::{Connector, Encrypted};
use super::url::Address;

/// How long a call waits for a connection, a lock or a statement before it gives up.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long the server waits for the next statement of a transaction, which holds a lock: a process
/// that was stopped keeps others of its tenant from writing for so long. It is shorter than
/// [`PATIENCE`], so that they get the lock before they give up. It is longer than the planning of the
/// largest cascade (100,000 records), for which a debug build on a busy machine needed 10 s.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(20);
/// Statements that a connection keeps prepared at the most.
const STATEMENTS: usize = 256;

/// Rows that are read at once where it is not known how many are needed.
const PART: i32 = 256;

/// A value of a statement.
type Value = Box<dyn ToSql + Sync + Send>;

/// A statement with its values.
pub(super) struct Call {
    sql: String,
    values: Vec<Value>,
    /// The tenant whose rows it uses, for row-level security.
    tenant: Option<Tenant>,
}

impl Call {
    pub(super) fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            values: Vec::new(),
            tenant: None,
        }
    }

    /// A statement about the tenant whose name is $1.
    pub(super) fn about(tenant: &Tenant, sql: impl Into<String>) -> Self {
        let call = Self {
            tenant: Some(tenant.clone()),
            ..Self::new(sql)
        };
        call.with(tenant.as_str().to_owned())
    }

    /// The same with one more value.
    #[must_use]
    pub(super) fn with(mut self, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.values.push(Box::new(value));
        self
    }

    /// The number that the next value gets.
    pub(super) fn next(&self) -> usize {
        self.values.len() + 1
    }

    /// Appends to the text of the statement.
    pub(super) fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    /// Appends a condition in which `?` stands for the value.
    pub(super) fn and(&mut self, sql: &str, value: impl ToSql + Sync + Send + 'static) {
        let mark = format!("${}", self.next());
        self.sql.push_str(" AND ");
        self.sql.push_str(&sql.replace('?', &mark));
        self.values.push(Box::new(value));
    }

    /// Adds a value that the text names already.
    pub(super) fn add(&mut self, value: impl ToSql + Sync + Send + 'static) {
        self.values.push(Box::new(value));
    }

    /// The same values with a text that is made of this one.
    pub(super) fn wrap(self, make: impl FnOnce(&str) -> String) -> Self {
        Self {
            sql: make(&self.sql),
            ..self
        }
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        let values = self.values.iter();
        values
            .map(|value| value.as_ref() as &(dyn ToSql + Sync))
            .collect()
    }
}

pub(super) struct Pool {
    address: Address,
    pub(super) place: String,
    connector: Connector,
    pub(super) runtime: Handle,
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
    /// Whether the tables have the column for pgvector.
    near: AtomicBool,
    /// Whether row-level security applies to our user.
    pub(super) row_security: Arc<AtomicBool>,
}

struct Connection {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Pool {
    pub(super) fn new(address: Address, runtime: Handle) -> Result<Self, StoreError> {
        Ok(Self {
            place: address.place.clone(),
            connector: Connector::new(&address)?,
            turns: Arc::new(Semaphore::new(address.pool)),
            near: AtomicBool::new(false),
            row_security: Arc::default(),
            idle: Arc::default(),
            runtime,
            address,
        })
    }

    /// Connections to the standby that the URL names.
    pub(super) fn of_standby(&self) -> Result<Option<Self>, StoreError> {
        let Some(address) = &self.address.standby else {
            return Ok(None);
        };
        let pool = Self::new(Address::clone(address), self.runtime.clone())?;
        Ok(Some(Self {
            row_security: Arc::clone(&self.row_security),
            ..pool
        }))
    }

    pub(super) fn has_near(&self) -> bool {
        self.near.load(Ordering::Relaxed)
    }

    pub(super) fn set_near(&self, has: bool) {
        self.near.store(has, Ordering::Relaxed);
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// A connection, once one is free. Works on any executor: what needs a runtime runs on ours.
    pub(super) async fn take(&self) -> Result<Lease, Failure> {
        let acquire = Arc::clone(&self.turns).acquire_owned();
        let waiting = {
            let _ours = self.runtime.enter();
            tokio::time::timeout(self.address.pool_wait, acquire)
        };
        let turn = match waiting.await {
            Ok(Ok(turn)) => turn,
            Ok(Err(closed)) => return Err(StoreError::Internal(closed.to_string()).into()),
            Err(_) => {
                return Err(StoreError::Busy {
                    place: format!("{} (all {} connections)", self.place, self.address.pool),
                    seconds: self.address.pool_wait.as_secs(),
                }
                .into());
            }
        };
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Lease {
            connection: Some(connection),
            in_transaction: false,
            tenant: None,
            row_security: Arc::clone(&self.row_security),
            place: self.place.clone(),
            idle: Arc::clone(&self.idle),
            _turn: turn,
        })
    }

    /// A connection of its own beside the pool, without its settings.
    pub(super) async fn open(
        &self,
    ) -> Result<
        (
            Client,
            tokio_postgres::Connection<Socket, Encrypted<Socket>>,
        ),
        Failure,
    > {
        let connector = self.connector.clone();
        Ok(self.address.config.connect(connector).await?)
    }

    /// Whether the URL switches row-level security on or off.
    pub(super) fn wanted_row_security(&self) -> Option<bool> {
        self.address.row_security
    }

    /// Closes the idle connections: the server they belong to may be gone.
    pub(super) fn forget_idle(&self) {
        lock(&self.idle).clear();
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        std::iter::from_fn(|| idle.pop()).find(|connection| !connection.client.is_closed())
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let (config, connector) = (self.address.config.clone(), self.connector.clone());
        let connecting = self.runtime.spawn(async move {
            let (client, connection) = config.connect(connector).await?;
            // It ends when the client is dropped; calls of the client get its errors.
            tokio::spawn(async { drop(connection.await) });
            client.batch_execute(&settings()).await?;
            Ok::<_, tokio_postgres::Error>(client)
        });
        let connected = connecting.await;
        let connected = connected.map_err(|lost| StoreError::Internal(lost.to_string()))?;
        let client = connected?;
        Ok(Connection {
            client,
            statements: HashMap::new(),
        })
    }
}

/// The settings of every connection. They are not startup options, which PgBouncer refuses.
///
/// Statements are planned once. A plan that was made while a table was empty is used when it is
/// large, so only index scans are allowed: every statement of ours has its index.
fn settings() -> String {
    let patience = PATIENCE.as_millis();
    let idle = IDLE_IN_TRANSACTION.as_millis();
    format!(
        "SET statement_timeout = {patience}; SET lock_timeout = {patience};
         SET idle_in_transaction_session_timeout = {idle};
         SET plan_cache_mode = force_generic_plan; SET jit = off;
         SET enable_seqscan = off; SET enable_bitmapscan = off"
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection for one call. It goes back to the pool unless a transaction was left open.
pub(super) struct Lease {
    connection: Option<Connection>,
    in_transaction: bool,
    /// The tenant whose rows its transactions use.
    tenant: Option<Tenant>,
    row_security: Arc<AtomicBool>,
    place: String,
    idle: Arc<Mutex<Vec<Connection>>>,
    _turn: OwnedSemaphorePermit,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Closing the connection is the surest way to end an open transaction.
        if !self.in_transaction
            && let Some(connection) = self.connection.take()
            && !connection.client.is_closed()
        {
            lock(&self.idle).push(connection);
        }
    }
}

impl Lease {
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Closes the connection at the end of the call.
    pub(super) fn never_return(&mut self) {
        self.in_transaction = true;
    }

    /// Only rows of this tenant are used from now on.
    pub(super) fn keep_to(&mut self, tenant: &Tenant) {
        self.tenant = Some(tenant.clone());
    }

    /// The statement that names the tenant to row-level security, for one transaction: PgBouncer may
    /// give the connection to another client afterwards.
    fn naming_tenant<C: Borrow<Call>>(&self, calls: &[C]) -> Option<String> {
        if !self.row_security.load(Ordering::Relaxed) {
            return None;
        }
        let calls = calls.iter().map(Borrow::borrow);
        let named = calls.filter_map(|call: &Call| call.tenant.as_ref()).next();
        let name = named.or(self.tenant.as_ref())?.as_str().replace('\'', "''");
        Some(format!("SET LOCAL mnemon.tenant = '{name}'"))
    }

    /// Row-level security may have been switched on since this process looked.
    fn notice<T>(&self, outcome: Result<T, tokio_postgres::Error>) -> Result<T, Failure> {
        if let Err(error) = &outcome
            && errors::misses_tenant(error)
        {
            self.row_security.store(true, Ordering::Relaxed);
        }
        Ok(outcome?)
    }

    fn connection(&mut self) -> Result<&mut Connection, Failure> {
        let gone = || StoreError::Internal("a connection was given away".to_owned());
        Ok(self.connection.as_mut().ok_or_else(gone)?)
    }

    /// Runs statements without values, one by one.
    pub(super) async fn batch(&mut self, sql: &str) -> Result<(), Failure> {
        Ok(self.connection()?.client.batch_execute(sql).await?)
    }

    /// Begins a transaction. Without its end the connection is closed.
    pub(super) async fn begin(&mut self, sql: &str) -> Result<(), Failure> {
        self.in_transaction = true;
        match self.naming_tenant::<Call>(&[]) {
            Some(naming) => self.batch(&format!("{sql}; {naming}")).await,
            None => self.batch(sql).await,
        }
    }

    /// Ends the transaction.
    pub(super) async fn end(&mut self, sql: &str) -> Result<(), Failure> {
        self.batch(sql).await?;
        self.in_transaction = false;
        Ok(())
    }

    /// All rows of a statement.
    pub(super) async fn all(&mut self, call: Call) -> Result<Vec<Row>, Failure> {
        let mut answers = self.pipeline(None, &[call], None).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// The only row of a statement.
    pub(super) async fn one(&mut self, call: Call) -> Result<Row, Failure> {
        let none = || StoreError::Internal("a statement gave no row".to_owned());
        let row = self.all(call).await?.into_iter().next();
        Ok(row.ok_or_else(none)?)
    }

    /// Sends all statements at once and then waits for all answers: one round trip. With `begin`
    /// they start a transaction, with `end` they end it. The first error is the answer; then the
    /// transaction was rolled back if `end` was sent.
    pub(super) async fn pipeline<C: Borrow<Call> + Sync>(
        &mut self,
        begin: Option<&str>,
        calls: &[C],
        end: Option<&'static str>,
    ) -> Result<Vec<Vec<Row>>, Failure> {
        self.prepare(calls).await?;
        let naming = match self.in_transaction {
            true => None,
            false => self.naming_tenant(calls),
        };
        // With row-level security a statement by itself gets a transaction, in the same round trip.
        let (begin, end) = match (begin, end, naming) {
            (None, None, Some(naming)) => (Some(format!("BEGIN; {naming}")), Some("COMMIT")),
            (Some(begin), end, Some(naming)) => (Some(format!("{begin}; {naming}")), end),
            (begin, end, _) => (begin.map(str::to_owned), end),
        };
        self.in_transaction |= begin.is_some();
        let Connection { client, statements } = self.connection()?;
        let client = &*client;
        let calls: Vec<&Call> = calls.iter().map(Borrow::borrow).collect();
        let params: Vec<Vec<&(dyn ToSql + Sync)>> =
            calls.iter().map(|call| call.params()).collect();
        let mut sent: Vec<Answer<'_>> = Vec::with_capacity(calls.len() + 2);
        if let Some(begin) = &begin {
            sent.push(Box::pin(run(client, begin)));
        }
        for (call, params) in calls.into_iter().zip(&params) {
            let lost = || StoreError::Internal("a statement was not prepared".to_owned());
            let statement = statements.get(&call.sql).ok_or_else(lost)?;
            sent.push(Box::pin(client.query(statement, params)));
        }
        if let Some(end) = end {
            sent.push(Box::pin(run(client, end)));
        }
        let answers = in_order(sent).await;
        let mut answers = self.notice(answers)?;
        if begin.is_some() {
            answers.remove(0);
        }
        if end.is_some() {
            answers.pop();
            self.in_transaction = false;
        }
        Ok(answers)
    }

    /// Reads the rows of a statement, a part at a time and all of one moment, until `take` has
    /// enough.
    pub(super) async fn until(
        &mut self,
        call: &Call,
        mut take: impl FnMut(&Row) -> Result<bool, Failure> + Send,
    ) -> Result<(), Failure> {
        self.prepare(std::slice::from_ref(call)).await?;
        // A call that is cancelled leaves the transaction to the connection's end.
        self.in_transaction = true;
        let naming = self.naming_tenant(std::slice::from_ref(call));
        let Connection { client, statements } = self.connection()?;
        let lost = || StoreError::Internal("a statement was not prepared".to_owned());
        let statement = statements.get(&call.sql).ok_or_else(lost)?.clone();
        let transaction = client.transaction().await?;
        let params = call.params();
        let name = async {
            match &naming {
                Some(naming) => transaction.batch_execute(naming).await,
                None => Ok(()),
            }
        };
        // Sent in this order, in one round trip.
        let (named, bound) = futures::join!(name, transaction.bind(&statement, &params));
        named?;
        let portal = bound?;
        let mut has_enough = false;
        while !has_enough {
            let rows = transaction.query_portal(&portal, PART).await?;
            has_enough = rows.is_empty();
            for row in &rows {
                if !has_enough {
                    has_enough = take(row)?;
                }
            }
        }
        transaction.rollback().await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Prepares the statements that this connection does not know yet, all in one round trip.
    async fn prepare<C: Borrow<Call>>(&mut self, calls: &[C]) -> Result<(), Failure> {
        let Connection { client, statements } = self.connection()?;
        if statements.len() > STATEMENTS {
            statements.clear();
        }
        let mut new: Vec<&str> = Vec::new();
        for call in calls.iter().map(Borrow::borrow) {
            let call: &Call = call;
            if !statements.contains_key(&call.sql) && !new.contains(&call.sql.as_str()) {
                new.push(&call.sql);
            }
        }
        let client = &*client;
        let prepared = futures::future::join_all(new.iter().map(|sql| client.prepare(sql))).await;
        for (sql, statement) in new.into_iter().zip(prepared) {
            statements.insert(sql.to_owned(), statement?);
        }
        Ok(())
    }
}

type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'a>>;

async fn run(client: &Client, sql: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
    client.batch_execute(sql).await.map(|()| Vec::new())
}

/// Polls all futures, always in this order: each sends its statement when it is polled first, so
/// the statements are sent in this order.
async fn in_order(mut sent: Vec<Answer<'_>>) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
    let mut answers: Vec<Option<Result<Vec<Row>, _>>> = sent.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut is_open = false;
        for (future, answer) in sent.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(ready) => *answer = Some(ready),
                    Poll::Pending => is_open = true,
                }
            }
        }
        match is_open {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}
