//! Models computed by the ONNX runtime, a shared library that is loaded at run time: a query takes
//! 2 ms instead of 12 with rten, but the library has 29 MB and is not part of the binary.
//!
//! **Invariant:** a library is code, so nothing here looks for one. It is loaded only from the path
//! that the caller has from a setting of the user.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mnemon_core::embed::EmbedError;
use ort::environment::Environment;
use ort::session::Session;
use ort::value::Tensor;

use super::bert::{IDS, MASK, Network, Pieces, TYPES, broken, failure, not_loaded, unusable};

/// The library of this process: the runtime allows one.
static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// A loaded ONNX runtime library, version 1.17 or later.
#[derive(Clone)]
pub struct OnnxRuntime {
    environment: Environment,
}

impl OnnxRuntime {
    /// Loads the library at this absolute path; the error is the reason in words.
    pub fn load(path: &Path) -> Result<Self, String> {
        if !path.is_absolute() {
            return Err("its path is not absolute".to_owned());
        }
        check_length(path)?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        match loaded.as_ref() {
            None => {}
            Some((own, environment)) if own == path => {
                let environment = environment.clone();
                return Ok(Self { environment });
            }
            Some((own, _)) => return Err(format!("{} is already loaded", own.display())),
        }
        let environment = ort::init_from(path).map_err(|error| error.to_string())?;
        // Builds by its makers report usage unless they are asked not to.
        let environment = environment.with_name("mnemon").with_telemetry(false);
        let environment = environment.build().map_err(|error| error.to_string())?;
        *loaded = Some((path.to_owned(), environment.clone()));
        Ok(Self { environment })
    }

    /// Loads a model from the bytes of the file at `path`.
    pub(super) fn model(
        &self,
        path: &Path,
        bytes: &[u8],
        output: &'static str,
    ) -> Result<impl Network + use<>, EmbedError> {
        let failed = |e: ort::Error| not_loaded(path, "the ONNX runtime cannot load them", e);
        let builder = Session::builder(&self.environment).map_err(failed)?;
        // One thread: a text is too short to share, and idle threads of the runtime's pool spin.
        let builder = builder.with_intra_threads(1);
        let mut builder = builder.map_err(|e| failed(e.into()))?;
        let session = builder.commit_from_memory(bytes).map_err(failed)?;
        let has = |name: &str| session.inputs().iter().any(|input| input.name() == name);
        if !has(IDS) || !has(MASK) {
            return Err(failure(
                path,
                "the model has no input_ids or attention_mask",
            ));
        }
        Ok(Model {
            has_types: has(TYPES),
            session: Mutex::new(session),
            output,
        })
    }
}

struct Model {
    /// The runtime may not compute two texts in one session at the same time.
    session: Mutex<Session>,
    has_types: bool,
    output: &'static str,
}

impl Network for Model {
    fn run(&self, pieces: &Pieces) -> Result<Vec<f32>, EmbedError> {
        let tensor = |numbers: &[u32]| {
            let numbers: Vec<i64> = numbers.iter().map(|n| i64::from(*n)).collect();
            let tensor = Tensor::from_array(([1, numbers.len()], numbers));
            tensor.map_err(|e| broken("its input has no shape", e))
        };
        let mask = vec![1; pieces.len()];
        let mut inputs = vec![(IDS, tensor(&pieces.ids)?), (MASK, tensor(&mask)?)];
        if self.has_types {
            inputs.push((TYPES, tensor(&pieces.second)?));
        }
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run(inputs).map_err(|e| broken("it failed", e))?;
        let output = outputs.get(self.output);
        let output = output.ok_or_else(|| unusable(&format!("it has no {}", self.output)))?;
        let numbers = output.try_extract_tensor::<f32>();
        let (_, numbers) = numbers.map_err(|e| broken("its output is not of type f32", e))?;
        Ok(numbers.to_vec())
    }
}

/// Refuses a file that was cut short: on Linux the process that loads it dies of SIGBUS. Files of
/// other formats are left to the loader of their system.
fn check_length(path: &Path) -> Result<(), String> {
    // Opening a pipe would wait for its other end.
    if !path.is_file() {
        return Err("there is no such file".to_owned());
    }
    let read = || {
        let mut header = [0; 64];
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.read_exact(&mut header).map(|()| (header, length))
    };
    let (header, length) = read().map_err(|error| format!("it cannot be read: {error}"))?;
    // A 64-bit little-endian ELF file: the table of its sections is its last part.
    let Some(fields) = header.strip_prefix(b"\x7fELF\x02\x01") else {
        return Ok(());
    };
    let number = |at: usize, bytes: usize| {
        let field = fields.iter().skip(at - 6).take(bytes).rev();
        field.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (start, size, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    match start.saturating_add(size * count) <= length {
        true => Ok(()),
        false => Err("it is not complete; download it again".to_owned()),
    }
}
