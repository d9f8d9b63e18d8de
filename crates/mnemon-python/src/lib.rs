//! The compiled part of the Python package: a store in this process, and the program `mnemon`.
//!
//! A store answers the requests of the HTTP API, without a connection, so that a client works alike
//! on a store and on a server. The interpreter's lock is released while a request is answered.

mod embed;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use http_body_util::BodyExt;
use mnemon_engine::access::Caller;
use mnemon_operations::config::{Config, EmbedderChoice, Environment, Flags, Origin, Sourced};
use mnemon_operations::{Error, wiring};
use mnemon_server::http::problem::Problem;
use mnemon_server::http::{Local, Took};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::runtime::{self, Handle, Runtime};
use tokio::sync::Notify;

create_exception!(
    _native,
    ProblemError,
    PyException,
    "The store cannot be opened; the first argument is the problem document as JSON."
);

/// How often a thread that waits looks whether a signal came.
const SIGNALS: Duration = Duration::from_millis(100);
/// How long the end of a store waits for changes that are being made.
const LAST_CHANGES: Duration = Duration::from_secs(10);

/// The process that opened the first store; 0 before that.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Neither threads nor what SQLite knows of its locks survive a fork: a child that used the same
/// file could damage it.
fn check_process() -> PyResult<()> {
    let own = process::id();
    match PROCESS.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed) {
        Err(other) if other != own => Err(PyRuntimeError::new_err(
            "a store was opened before this process was forked: open stores only after the fork, \
             for example with the start method `spawn` of multiprocessing",
        )),
        _ => Ok(()),
    }
}

/// Opens a store, making it if it is not there. `embedder` has the name of a model, its dimension and
/// a function that takes a list of texts and returns a list with a vector or `None` for each.
#[pyfunction]
#[pyo3(signature = (store, tenant=None, config=None, embedder=None))]
fn open(
    py: Python<'_>,
    store: String,
    tenant: Option<String>,
    config: Option<PathBuf>,
    embedder: Option<embed::Given>,
) -> PyResult<Store> {
    check_process()?;
    let opened = py.detach(|| {
        let mut config = configured(store, tenant, config)?;
        if let Some(given) = embedder {
            let function = EmbedderChoice::Function(embed::embedder(given)?);
            config.embedder = Sourced {
                value: function,
                origin: Origin::Flag("embed"),
            };
        }
        Opened::new(config)
    });
    let opened = opened.map_err(|error| {
        let problem = serde_json::to_string(&Problem::of(&error));
        ProblemError::new_err(problem.unwrap_or_default())
    })?;
    Ok(Store {
        opened: Mutex::new(Some(Arc::new(opened))),
    })
}

/// Runs the program with these arguments and returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| mnemon_cli::cli::run_with(arguments))
}

/// Without a configuration file, nothing but the store is read: neither variables nor files of the
/// working folder.
fn configured(
    store: String,
    tenant: Option<String>,
    file: Option<PathBuf>,
) -> Result<Config, Error> {
    if let Some(file) = file {
        let flags = Flags {
            config: Some(file),
            store: Some(store),
            tenant,
            ..Flags::default()
        };
        return Ok(Config::load(&flags, &Environment::of_process())?);
    }
    let mut config = Config::for_store(store);
    if let Some(tenant) = tenant {
        config.tenant.value = tenant.parse()?;
    }
    Ok(config)
}

struct Opened {
    local: Local,
    /// `None` once it is being dropped.
    runtime: Option<Runtime>,
    process: u32,
}

impl Opened {
    fn new(config: Config) -> Result<Self, Error> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("mnemon")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::Internal(error.to_string()))?;
        let entered = runtime.enter();
        let memory = wiring::open(&config)?.memory;
        let mut caller = Caller::local(config.tenant.value.clone());
        caller.name = "python".to_owned();
        let local = Local::new(memory.into(), config, caller);
        drop(entered);
        Ok(Self {
            local,
            runtime: Some(runtime),
            process: process::id(),
        })
    }

    fn runtime(&self) -> PyResult<&Runtime> {
        check_process()?;
        let runtime = self.runtime.as_ref();
        runtime.ok_or_else(|| PyRuntimeError::new_err("the store was closed"))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        if self.process == process::id() {
            let close = || {
                runtime.block_on(async {
                    let _ = tokio::time::timeout(LAST_CHANGES, self.local.close()).await;
                });
            };
            // The last changes may need the interpreter, for their vectors.
            if Python::try_attach(|py| py.detach(close)).is_none() {
                close();
            }
            runtime.shutdown_background();
        } else {
            // The threads are those of the process before the fork.
            std::mem::forget(runtime);
        }
    }
}

/// A store that this process has opened.
#[pyclass(frozen, module = "mnemon._native")]
struct Store {
    opened: Mutex<Option<Arc<Opened>>>,
}

#[pymethods]
impl Store {
    /// The answer to a request of the HTTP API.
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        target: &str,
        headers: Vec<(String, String)>,
        body: &[u8],
    ) -> PyResult<Answer> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(Bytes::copy_from_slice(body)));
        let request = request.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let opened = {
            let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.clone()
        };
        let opened = opened.ok_or_else(|| PyRuntimeError::new_err("the store was closed"))?;
        let runtime = opened.runtime()?.handle().clone();
        py.detach(|| {
            let response = runtime.block_on(opened.local.answer(request));
            let (head, body) = response.into_parts();
            let headers = head.headers.iter().map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.to_string(), value.into_owned())
            });
            Ok(Answer {
                status: head.status.as_u16(),
                seconds: head
                    .extensions
                    .get()
                    .map(|took: &Took| took.0.as_secs_f64()),
                headers: headers.collect(),
                body: Mutex::new(Some(body)),
                closed: Arc::default(),
                _opened: opened.clone(),
                runtime: runtime.clone(),
            })
        })
    }

    /// Closes the store, when the requests that are being answered have ended.
    fn close(&self, py: Python<'_>) {
        let opened = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.take()
        };
        py.detach(|| drop(opened));
    }
}

/// The answer to a request. Its body is read part by part.
#[pyclass(frozen, module = "mnemon._native")]
struct Answer {
    #[pyo3(get)]
    status: u16,
    /// Time of the operation, without its request and its answer.
    #[pyo3(get)]
    seconds: Option<f64>,
    #[pyo3(get)]
    headers: Vec<(String, String)>,
    /// `None` while it is being read, and after its end.
    body: Mutex<Option<Body>>,
    closed: Arc<Notify>,
    runtime: Handle,
    /// The store stays open as long as somebody reads.
    _opened: Arc<Opened>,
}

/// What came while a thread waited for the next part.
enum Next {
    Part(Bytes),
    End,
    Failed(String),
    Nothing,
}

impl Answer {
    fn next(&self, body: &mut Body) -> Next {
        self.runtime.block_on(async {
            tokio::select! {
                frame = body.frame() => match frame {
                    Some(Ok(frame)) => frame.into_data().map_or(Next::Nothing, Next::Part),
                    Some(Err(error)) => Next::Failed(error.to_string()),
                    None => Next::End,
                },
                () = self.closed.notified() => Next::End,
                () = tokio::time::sleep(SIGNALS) => Next::Nothing,
            }
        })
    }

    fn body(&self) -> std::sync::MutexGuard<'_, Option<Body>> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Answer {
    /// The next part of the body; `None` at its end, or when the answer was closed.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(mut body) = self.body().take() else {
            return Ok(None);
        };
        loop {
            match py.detach(|| self.next(&mut body)) {
                Next::Part(part) => {
                    *self.body() = Some(body);
                    return Ok(Some(PyBytes::new(py, &part)));
                }
                Next::End => return Ok(None),
                Next::Failed(what) => return Err(PyRuntimeError::new_err(what)),
                Next::Nothing => py.check_signals()?,
            }
        }
    }

    /// Ends the answer. A thread that reads it sees its end.
    fn close(&self) {
        self.closed.notify_one();
        drop(self.body().take());
    }
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Answer, ProblemError, Store, main, open};
}
