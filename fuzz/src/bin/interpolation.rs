//! Arbitrary URI patterns and values: no panic, the same result each time, no value leaves the
//! literal prefix, and a template extracts the same value that the pattern expanded.

#![no_main]

use std::collections::BTreeMap;

use larder::{UriTemplate, workflow::UriPattern};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (String, String, String)| {
    let (written, first, second) = input;
    if let Ok(pattern) = UriPattern::parse(&written) {
        let names: Vec<_> = pattern.variables().map(str::to_owned).collect();
        let values = names.into_iter().zip([&first, &second].into_iter().cycle().cloned());
        let values: BTreeMap<_, _> = values.collect();
        let filled = pattern.fill(&values);
        assert_eq!(filled, pattern.fill(&values));
        if let Ok(uri) = filled {
            let prefix = written.split('{').next().unwrap_or_default();
            assert!(uri.starts_with(prefix), "{uri:?} does not begin with {prefix:?}");
        }
        // The displayed pattern parses to the same pattern.
        assert_eq!(UriPattern::parse(&pattern.to_string()), Ok(pattern));
    }
    for written in ["d://x/{v}/y", "d://x/{+v}"] {
        let pattern = UriPattern::parse(written).unwrap();
        let Ok(uri) = pattern.fill(&BTreeMap::from([("v".to_owned(), first.clone())])) else {
            continue;
        };
        assert!(!uri["d://x/".len()..].contains(['?', '#', '{', ' ']), "{uri:?}");
        assert!(uri.split('/').all(|segment| segment != ".." && segment != "."), "{uri:?}");
        let template = UriTemplate::parse(written).unwrap();
        let found = template.matches(&uri).unwrap_or_else(|| panic!("{uri:?} matches {written}"));
        assert_eq!(found["v"], first);
    }
});
