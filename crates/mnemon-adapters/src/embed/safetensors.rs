//! Reads tensors out of a safetensors file: a length, a JSON header, then raw bytes. The file
//! is checked against its own header before anything is used of it.

use serde::Deserialize;
use serde_json::Value;

/// Bytes of a header; real ones have a few kilobytes.
const MAX_HEADER_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

pub(super) struct Safetensors<'a> {
    header: Value,
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
        let header = serde_json::from_slice(header).map_err(unreadable)?;
        Ok(Self { header, data })
    }

    /// The bytes of a tensor of exactly this type and shape, whose elements have `size` bytes.
    pub(super) fn tensor(
        &self,
        name: &str,
        (dtype, size): (&str, usize),
        shape: &[usize],
    ) -> Result<&'a [u8], String> {
        let entry = self.header.get(name);
        let entry = entry.ok_or_else(|| format!("it has no tensor {name}"))?;
        let entry = Entry::deserialize(entry).map_err(unreadable)?;
        if entry.dtype != dtype || entry.shape != shape {
            let (got, got_shape) = (entry.dtype, entry.shape);
            return Err(format!(
                "tensor {name} is {got} {got_shape:?}, not {dtype} {shape:?}"
            ));
        }
        let (start, end) = entry.data_offsets;
        let expected = shape.iter().product::<usize>() * size;
        self.data
            .get(start..end)
            .filter(|bytes| bytes.len() == expected)
            .ok_or_else(|| format!("tensor {name} is cut short"))
    }
}

fn unreadable(error: serde_json::Error) -> String {
    format!("its header is not readable ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const I8: (&str, usize) = ("I8", 1);
    const HEADER: &str =
        r#"{"__metadata__":{"a":"b"},"x":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]}}"#;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u64).to_le_bytes();
        [&length, header.as_bytes(), data].concat()
    }

    fn tensor(bytes: &[u8]) -> Result<&[u8], String> {
        Safetensors::parse(bytes)?.tensor("x", I8, &[2, 2])
    }

    #[test]
    fn gives_the_bytes_of_a_tensor_or_says_what_is_wrong() {
        let whole = file(HEADER, &[1, 2, 3, 4]);
        assert_eq!(tensor(&whole).unwrap(), [1, 2, 3, 4]);
        for cut in 0..whole.len() {
            assert!(tensor(&whole[..cut]).is_err(), "cut at {cut}");
        }
        let says = |bytes: &[u8], what: &str| assert!(tensor(bytes).unwrap_err().contains(what));
        says(&file("{", &[]), "not readable");
        says(&u64::MAX.to_le_bytes(), "claims");
        let floats = Safetensors::parse(&whole).unwrap();
        let wrong = floats.tensor("x", ("F32", 4), &[2, 2]).unwrap_err();
        assert!(wrong.contains("I8"), "{wrong}");
        let backwards = HEADER.replace("[0,4]", "[4,0]");
        assert!(tensor(&file(&backwards, &[1, 2, 3, 4])).is_err());
    }
}
