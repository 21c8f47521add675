//! Arbitrary windows of arbitrary content: each is what a naive reader sees, and the windows
//! that follow each other make up the content.

#![no_main]

use std::{
    future::Future,
    sync::{Arc, LazyLock},
};

use larder::{
    auth::Principal,
    clock::ManualClock,
    store::{
        Content, Details, MemoryLimits, ResourceUri, Store, StoreLimits, StoredResource, Window,
        WindowEnd,
    },
};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

/// Blocks are compressed on threads of the runtime.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().build().unwrap());

static STORE: LazyLock<Store> = LazyLock::new(|| {
    let (memory, limits) = (MemoryLimits::default(), StoreLimits::default());
    Store::memory(Arc::new(ManualClock::new()), memory, limits)
});

/// More than one block of the store.
const SEVERAL_BLOCKS: usize = 300 << 10;

fuzz_target!(|input: (&str, bool, u32, u16, u16)| {
    let (content, several_blocks, first, limit, budget) = input;
    if content.is_empty() {
        return;
    }
    let times = if several_blocks { SEVERAL_BLOCKS / content.len() } else { 1 };
    let content = content.repeat(times.max(1));
    let found = stored(&content);
    let (first, limit, budget) = (u64::from(first), u64::from(limit).max(1), usize::from(budget));

    let all: Vec<&str> = content.split_inclusive('\n').collect();
    let line = first % (all.len() as u64 + 2);
    let window = now(found.lines(line, limit, usize::MAX));
    let skipped = usize::try_from(line).unwrap();
    let seen: Vec<&str> =
        all.iter().copied().skip(skipped).take(usize::from(input.3).max(1)).collect();
    assert_eq!(text(&window), seen.concat());

    let byte = usize::try_from(first).unwrap() % (content.len() + 2);
    let window = now(found.bytes_from(byte as u64, budget));
    let start = content.floor_char_boundary(byte);
    let end = content.floor_char_boundary(start + budget);
    let one = content[start..].chars().next().map_or(0, char::len_utf8);
    assert_eq!(text(&window), &content[start..end.max(start + one)]);

    // A small budget in much content takes too many windows.
    let budget = budget.max(content.len() / 64);
    let (mut next, mut whole) = (WindowEnd::Line(0), String::new());
    loop {
        let window = match next {
            WindowEnd::Line(line) => now(found.lines(line, u64::MAX, budget)),
            WindowEnd::Byte(byte) => now(found.bytes_from(byte, budget)),
            WindowEnd::Content => break,
        };
        assert_eq!(window.range.start, whole.len() as u64);
        assert_ne!(window.end, next, "no progress");
        let page = text(&window);
        assert!(page.len() <= budget || page.chars().count() == 1);
        whole += page;
        next = window.end;
    }
    assert_eq!(whole, content);
});

fn stored(content: &str) -> StoredResource {
    let uri = ResourceUri::parse("fuzz://content").unwrap();
    let owner = Principal::Local.owner();
    now(STORE.create(&owner, uri.clone(), Content::from(content.to_owned()), Details::default()));
    now(STORE.get(&owner, &uri))
}

fn text(window: &Window) -> &str {
    std::str::from_utf8(&window.bytes).expect("no character is split")
}

fn now<T, E: std::fmt::Debug>(future: impl Future<Output = Result<T, E>>) -> T {
    RUNTIME.block_on(future).unwrap()
}
