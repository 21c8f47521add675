//! Arbitrary URI templates and URIs, one on each of two lines: no panic, and no value of a
//! variable could leave the prefix of its template.

#![no_main]

use larder::UriTemplate;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let Some((written, uri)) = input.split_once('\n') else { return };
    let Ok(template) = UriTemplate::parse(written) else { return };
    let prefix = written.split('{').next().unwrap_or_default();
    let names: Vec<_> = template.variables().collect();
    assert!(!names.is_empty());
    let (path, query) = written.split_once("{?").unwrap_or((written, ""));
    let Some(values) = template.matches(uri) else { return };
    assert_eq!(template.matches(uri).as_ref(), Some(&values));
    assert!(uri.starts_with(prefix));
    for (name, value) in &values {
        assert!(names.contains(&name), "{name} is no variable of {written}");
        let is_parameter = query.split([',', '}']).any(|parameter| parameter == name);
        let is_uri = path == format!("{{+{name}}}");
        if is_parameter || is_uri {
            continue;
        }
        assert!(!value.is_empty() && !value.contains('\0'), "{value:?}");
        assert!(!value.starts_with(['/', '\\']), "{value:?}");
        assert!(value.split(['/', '\\']).all(|segment| segment != ".."), "{value:?}");
    }
    // All variables but parameters have a value.
    assert!(names.iter().all(|name| {
        values.contains_key(*name) || query.split([',', '}']).any(|parameter| parameter == **name)
    }));
});
