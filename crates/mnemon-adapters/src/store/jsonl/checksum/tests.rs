use super::*;

fn sealed(text: &str) -> Vec<u8> {
    let mut line = text.as_bytes().to_vec();
    seal(&mut line, 0);
    line
}

#[test]
fn a_sealed_line_is_json_and_right() {
    let line = sealed(r#"{"op":"add","n":1}"#);
    assert_eq!(check(&line), Checksum::Right);
    let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(value["crc"].as_str().unwrap().len(), DIGITS);
    assert_eq!(check(br#"{"op":"add","n":1}"#), Checksum::Absent);
    let crlf = [&line[..], b"\r"].concat();
    assert_eq!(
        check(&crlf),
        Checksum::Right,
        "an editor changed the line breaks"
    );
}

#[test]
fn no_flipped_bit_leaves_it_right() {
    let line = sealed(r#"{"op":"add","entry":{"id":"a","content":"some words"}}"#);
    for at in 0..line.len() {
        for bit in 0..8 {
            let mut flipped = line.clone();
            flipped[at] ^= 1 << bit;
            assert_ne!(check(&flipped), Checksum::Right, "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn lines_that_were_joined_are_found() {
    let (one, two) = (
        sealed(r#"{"op":"add","n":1}"#),
        sealed(r#"{"op":"delete"}"#),
    );
    for joint in [&b"J"[..], b"", b"\x8a", b"{\"op\":\"torn"] {
        let joined = [&one[..], joint, &two].concat();
        assert_eq!(lines_within(&joined), [&one[..], &two]);
    }
    let mut damaged = [&one[..], b"J", &two].concat();
    damaged[9] ^= 1;
    assert_eq!(lines_within(&damaged), [&two[..]]);
    assert!(lines_within(b"{\"op\":\"add\",\"crc\":\"00000000\"}").is_empty());
}
