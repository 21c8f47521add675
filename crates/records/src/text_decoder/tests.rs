use std::io::Read;

use flate2::{Compression as Level, read::GzEncoder};
use proptest::prelude::*;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    GzEncoder::new(bytes, Level::default()).read_to_end(&mut out).expect("it is in memory");
    out
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).expect("it is in memory")
}

fn utf_16(text: &str, with_mark: bool) -> Vec<u8> {
    let mark = with_mark.then_some(0xFEFF);
    mark.into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// Decodes content in blocks of this size.
fn decode(
    bytes: &[u8],
    encoding: TextEncoding,
    block: usize,
    limit: u64,
) -> Result<String, DecodeFault> {
    let mut decoder = TextDecoder::new(encoding, limit);
    let mut text = Vec::new();
    for block in bytes.chunks(block) {
        let mut rest = block;
        while !rest.is_empty() {
            rest = &rest[decoder.step(rest, &mut text)?..];
        }
    }
    decoder.finish(&mut text)?;
    Ok(String::from_utf8(text).expect("it is UTF-8"))
}

#[test]
fn text_in_other_encodings_is_text() {
    let text = "name,größe\nZoë,1\n";
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let with_nul = "name,size\nZoe\0,1\nBob,2\n";

    for (bytes, mime_type, told, expected) in [
        (latin.clone(), Some("text/csv; charset=iso-8859-1"), "windows-1252", text),
        (latin.clone(), Some("text/csv; header=present; charset=\"latin1\""), "windows-1252", text),
        (latin.clone(), None, "windows-1252 (a guess)", text),
        (utf_16(text, true), None, "utf-16le", text),
        (utf_16(text, false), None, "utf-16le (a guess)", text),
        (utf_16(text, false), Some("text/plain;charset=UTF-16LE"), "utf-16le", text),
        (big, Some("text/plain;charset=UTF-16BE"), "utf-16be", text),
        (gzip(text.as_bytes()), Some("application/gzip"), "gzip", text),
        (zstd(text.as_bytes()), None, "zstd", text),
        (gzip(&latin), Some("text/csv; charset=cp1252"), "gzip, windows-1252", text),
        (zstd(&utf_16(text, true)), None, "zstd, utf-16le", text),
        ([gzip(b"name,"), gzip(&text.as_bytes()[5..])].concat(), None, "gzip", text),
        ([zstd(b"name,"), zstd(&text.as_bytes()[5..])].concat(), None, "zstd", text),
        (with_nul.into(), None, "utf-8", with_nul),
    ] {
        let encoding = TextEncoding::detect(&bytes, mime_type).expect("it is text");
        assert_eq!(encoding.told(), told, "{mime_type:?}");
        for block in [1, 3, 100, bytes.len()] {
            let found = decode(&bytes, encoding, block, 1_000);
            assert_eq!(found.as_deref(), Ok(expected), "{told} in blocks of {block}");
        }
        assert_eq!(encoding.decode_head(&bytes, 4), expected.as_bytes()[..4]);
    }
}

#[test]
fn other_bytes_are_no_text() {
    let image = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xDE";
    let random: Vec<u8> =
        (0..600_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in [&image[..], &random, &[0], &[0; 100], &gzip(&random), &zstd(image)] {
        assert_eq!(TextEncoding::detect(bytes, None), None, "{:?}", &bytes[..bytes.len().min(8)]);
    }
}

#[test]
fn a_bomb_ends_at_the_limit() {
    let bomb = vec![b'a'; 50 << 20];
    for bytes in [gzip(&bomb), zstd(&bomb)] {
        let encoding = TextEncoding::detect(&bytes, None).expect("it is text");
        let fault = decode(&bytes, encoding, 256 << 10, 1 << 20);
        assert_eq!(fault, Err(DecodeFault::TooLong { limit: 1 << 20 }));
        let told = "it is longer than 1,048,576 bytes when it is decoded";
        assert_eq!(fault.map_err(|fault| fault.to_string()), Err(told.to_owned()));
    }
}

#[test]
fn damaged_content_is_told() {
    let text = "line\n".repeat(10_000);
    for whole in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
        let encoding = TextEncoding::detect(&whole, None).expect("it is text");
        let mut wrong = whole.clone();
        let middle = wrong.len() / 2;
        wrong[middle..].fill(0xFF);

        for bytes in [&whole[..whole.len() - 9], &wrong] {
            let fault = decode(bytes, encoding, 64, 1 << 20);
            assert!(matches!(fault, Err(DecodeFault::Damaged { .. })), "{fault:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_alike_in_any_blocks(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        magic in prop::sample::select(vec![&b""[..], b"\x1F\x8B\x08\0\0\0\0\0\0\0", b"\x28\xB5\x2F\xFD", b"\xFF\xFE"]),
        block in 1_usize..40,
    ) {
        bytes.splice(0..0, magic.iter().copied());
        let _ = TextEncoding::detect(&bytes, Some("text/plain"));

        for label in ["utf-8", "utf-16le", "windows-1252", "shift_jis"] {
            let charset = Charset::parse(label).expect("it is known");
            let encoding = TextEncoding::given(&bytes, charset);
            let whole = decode(&bytes, encoding, bytes.len().max(1), 1 << 20);
            prop_assert_eq!(decode(&bytes, encoding, block, 1 << 20).is_ok(), whole.is_ok());
            if whole.is_ok() {
                prop_assert_eq!(decode(&bytes, encoding, block, 1 << 20), whole);
            }
        }
    }
}
