//! A function in Python as the embedder of a store.

use mnemon_operations::Error;
use mnemon_operations::config::EmbeddingFunction;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// The name of the model, its dimension and the function.
pub(crate) type Given = (String, usize, Py<PyAny>);

pub(crate) fn embedder((name, dimension, function): Given) -> Result<EmbeddingFunction, Error> {
    let call = move |texts: &[&str]| call(&function, texts);
    Ok(EmbeddingFunction::new(&name, dimension, call)?)
}

/// Takes the interpreter's lock for this call only. The thread may be one that drives other requests:
/// they go on meanwhile.
fn call(function: &Py<PyAny>, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, String> {
    let made = tokio::task::block_in_place(|| {
        Python::try_attach(|py| {
            let made = function.bind(py).call1((texts.to_vec(),));
            let made = made.and_then(|made| made.extract::<Vec<Option<Vec<f32>>>>());
            made.map_err(|error| problem(py, &error))
        })
    });
    made.unwrap_or_else(|| Err("the interpreter is shutting down".to_owned()))
}

fn problem(py: Python<'_>, error: &PyErr) -> String {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // The caller gets it when the operation has ended.
        let raised = py
            .import("_thread")
            .and_then(|thread| thread.call_method0("interrupt_main"));
        drop(raised);
    }
    format!("the function `embed` failed: {error}")
}
