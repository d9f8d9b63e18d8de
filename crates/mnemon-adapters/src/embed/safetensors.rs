//! Reads tensors out of a safetensors file: a length, a JSON header, then raw bytes. The file
//! is checked against its own header before anything is used of it.

use std::collections::HashMap;

use serde::Deserialize;

/// Bytes of a header; real ones have a few kilobytes.
const MAX_HEADER_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

pub(super) struct Safetensors<'a> {
    entries: HashMap<String, Entry>,
    data: &'a [u8],
}

impl<'a> Safetensors<'a> {
    /// Says in words what is wrong with a file that is cut short or is none.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let (length, rest) = bytes
            .split_first_chunk()
            .ok_or("it is shorter than its header")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_HEADER_BYTES {
            return Err(format!("its header claims {length} bytes"));
        }
        let (header, data) = rest
            .split_at_checked(length)
            .ok_or("it ends within its header")?;
        Ok(Self {
            entries: entries(header)?,
            data,
        })
    }

    /// The bytes of a tensor of exactly this type and shape.
    pub(super) fn tensor(
        &self,
        name: &str,
        dtype: &str,
        shape: &[usize],
    ) -> Result<&'a [u8], String> {
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| format!("it has no tensor {name}"))?;
        if entry.dtype != dtype || entry.shape != shape {
            let Entry {
                dtype: got,
                shape: got_shape,
                ..
            } = entry;
            return Err(format!(
                "tensor {name} is {got} {got_shape:?}, not {dtype} {shape:?}"
            ));
        }
        let (start, end) = entry.data_offsets;
        let expected = shape.iter().product::<usize>() * element_bytes(dtype);
        self.data
            .get(start..end)
            .filter(|bytes| bytes.len() == expected)
            .ok_or_else(|| format!("tensor {name} is cut short"))
    }
}

fn entries(header: &[u8]) -> Result<HashMap<String, Entry>, String> {
    let unreadable = |e: serde_json::Error| format!("its header is not readable ({e})");
    let mut raw: HashMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(unreadable)?;
    raw.remove("__metadata__");
    raw.into_iter()
        .map(|(k, v)| Ok((k, serde_json::from_value(v).map_err(unreadable)?)))
        .collect()
}

fn element_bytes(dtype: &str) -> usize {
    match dtype {
        "I8" | "U8" => 1,
        "F16" | "BF16" => 2,
        "F32" => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [
            &(header.len() as u64).to_le_bytes(),
            header.as_bytes(),
            data,
        ]
        .concat()
    }

    const HEADER: &str =
        r#"{"__metadata__":{"a":"b"},"x":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]}}"#;

    #[test]
    fn gives_the_bytes_of_a_tensor() {
        let bytes = file(HEADER, &[1, 2, 3, 4]);
        assert_eq!(
            Safetensors::parse(&bytes)
                .unwrap()
                .tensor("x", "I8", &[2, 2]),
            Ok(&[1, 2, 3, 4][..])
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let whole = file(HEADER, &[1, 2, 3, 4]);
        let tensor = |bytes: &[u8]| {
            Safetensors::parse(bytes)?
                .tensor("x", "I8", &[2, 2])
                .map(<[u8]>::to_vec)
        };
        for cut in 0..whole.len() {
            assert!(tensor(&whole[..cut]).is_err(), "cut at {cut}");
        }
        assert!(
            tensor(&file("{", &[]))
                .unwrap_err()
                .contains("not readable")
        );
        assert!(
            tensor(&u64::MAX.to_le_bytes())
                .unwrap_err()
                .contains("claims")
        );
        let wrong = Safetensors::parse(&whole)
            .unwrap()
            .tensor("x", "F32", &[2, 2])
            .unwrap_err();
        assert!(wrong.contains("I8"), "{wrong}");
        let backwards = HEADER.replace("[0,4]", "[4,0]");
        assert!(tensor(&file(&backwards, &[1, 2, 3, 4])).is_err());
    }
}
