//! The levels hold: a module uses only modules of its own and of lower levels.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The levels of the modules of `larder-server`, lowest first; Cargo holds the order of the crates.
/// A module uses modules of its own and of the lower level, never in a circle.
const LEVELS: [(&str, &[&str]); 2] = [
    (
        "offered",
        &["apps", "content_link", "handler", "registry", "sources", "spill", "tools", "workflow"],
    ),
    ("served", &["admission", "dispatch", "era", "http", "stdio"]),
];

/// The folder of these modules.
const SERVER: &str = "crates/server/src";

/// The level of a module of the server.
fn level(module: &str) -> usize {
    let level = LEVELS.iter().position(|(_, modules)| modules.contains(&module));
    level.unwrap_or_else(|| panic!("{module} has no level: add it to LEVELS"))
}

/// Whether a name of the crate's root is a module, and no item that the crate exports.
fn is_module(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_lowercase) && name != "assistant" && name != "user"
}

/// A source file of one of the crates.
struct Source {
    /// The folder of the crate's sources, such as `crates/store/src`.
    root: String,
    file: PathBuf,
    text: String,
}

/// The source files of all crates, apart from the macros.
fn sources() -> Vec<Source> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }

    let mut sources = Vec::new();
    for root in source_folders() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(&root);
        let mut files = Vec::new();
        walk(&folder, &mut files);
        files.sort();

        sources.extend(files.into_iter().map(|path| Source {
            root: root.clone(),
            text: fs::read_to_string(&path).unwrap(),
            file: path.strip_prefix(&folder).unwrap().to_owned(),
        }));
    }
    sources
}

/// `src`, and the folders of sources below `crates/`.
fn source_folders() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let names = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().file_name());
    let mut folders: Vec<_> = names
        .map(|name| format!("crates/{}/src", name.to_str().unwrap()))
        .filter(|folder| folder != "crates/macros/src")
        .collect();

    folders.push("src".to_owned());
    folders.sort();
    folders
}

/// The code without comments, strings and the test module, which comes last in a file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let bytes: Vec<char> = text.chars().collect();
    let mut code = String::new();
    let mut at = 0;
    let starts = |at: usize, with: &str| {
        with.chars().enumerate().all(|(n, c)| bytes.get(at + n) == Some(&c))
    };
    while at < bytes.len() {
        if starts(at, "//") {
            while at < bytes.len() && bytes[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "r#\"") {
            at += 3;
            while at < bytes.len() && !starts(at, "\"#") {
                at += 1;
            }
            at += 2;
        } else if bytes[at] == '"' {
            at += 1;
            while at < bytes.len() && bytes[at] != '"' {
                at += if bytes[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if starts(at, "'\"'") || starts(at, "'/'") {
            at += 3;
        } else {
            code.push(bytes[at]);
            at += 1;
        }
    }
    code
}

/// The path of a file's module, such as `store::memory` for `store/memory/mod.rs`.
fn module_path(file: &Path) -> Vec<String> {
    let mut parts: Vec<_> =
        file.with_extension("").iter().map(|p| p.to_str().unwrap().to_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// The modules of the crate that code names: by `crate::`, or by enough `super::` to reach the
/// root.
fn used(code: &str, depth: usize) -> BTreeSet<String> {
    let root = "super::".repeat(depth);
    let mut used = named_after(code, "crate::");
    used.extend(named_after(code, &root));
    used.remove("super");
    used
}

/// The names that follow a prefix of paths.
fn named_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    if prefix.is_empty() {
        return named;
    }
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
            named.extend(first_segments(&code[at + prefix.len()..]));
        }
    }
    named
}

/// `a` of `a::b`, or `a` and `c` of `{a::b, c::{d, e}}`.
fn first_segments(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(list) = path.strip_prefix('{') else {
        let name = name(path);
        // Macros are at the root, whatever module defines them.
        let is_macro = path[name.len()..].starts_with('!');
        return if is_macro { Vec::new() } else { vec![name] };
    };
    let mut depth = 0;
    let mut items = vec![String::new()];
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            _ => {}
        }
        items.last_mut().unwrap().push(c);
    }
    let names = items.iter().map(|item| name(item.trim_start_matches(','))).collect::<Vec<_>>();
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

fn is_test(file: &Path) -> bool {
    file.with_extension("").iter().any(|part| part == "tests")
}

#[test]
fn modules_use_only_modules_of_their_own_and_of_lower_levels() {
    let mut problems = Vec::new();
    for Source { root, file, text } in sources() {
        let path = module_path(&file);
        let Some(module) = path.first().filter(|_| root == SERVER && !is_test(&file)) else {
            continue;
        };

        for other in used(&code(&text), path.len()).into_iter().filter(|name| is_module(name)) {
            if level(&other) > level(module) {
                problems.push(format!("{}: {module} uses {other}", file.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn http_time_and_randomness_have_their_own_modules() {
    let only: [(&str, &[&str]); 5] = [
        ("axum::", &["http", "app"]),
        ("hyper", &["http"]),
        ("SystemTime", &["clock"]),
        ("Utc::now", &[]),
        ("rand::", &["random"]),
    ];
    for Source { file, text, .. } in sources() {
        let path = module_path(&file);
        let module = path.first().map_or("lib", String::as_str);

        for (word, modules) in only {
            let names_it = names(&code(&text), word);
            assert!(!names_it || modules.contains(&module), "{} uses {word}", file.display());
        }
    }
}

/// Whether code has a word that is not the end of a longer one.
fn names(code: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    code.match_indices(word).any(|(at, _)| !code[..at].ends_with(is_part))
}

#[test]
fn no_circle_is_inside_a_crate_or_a_module() {
    for root in source_folders() {
        let files: Vec<_> = sources()
            .into_iter()
            .filter(|source| source.root == root && !is_test(&source.file))
            .map(|source| (module_path(&source.file), code(&source.text)))
            .collect();
        assert_no_circle(&root, &files);
    }
}

/// Checks the modules of one crate, each with its path and its code.
fn assert_no_circle(root: &str, files: &[(Vec<String>, String)]) {
    let folders: BTreeSet<Vec<String>> =
        files.iter().flat_map(|(path, _)| (0..path.len()).map(|n| path[..n].to_vec())).collect();
    for folder in folders {
        let children: BTreeSet<&String> = files
            .iter()
            .filter(|(path, _)| path.len() > folder.len() && path.starts_with(&folder))
            .map(|(path, _)| &path[folder.len()])
            .collect();
        // Which of its siblings each child names.
        let mut names = BTreeMap::<&String, BTreeSet<&String>>::new();
        for (path, code) in files {
            if path.len() <= folder.len() || !path.starts_with(&folder) {
                continue;
            }
            let child = &path[folder.len()];
            let up = "super::".repeat(path.len() - folder.len());
            let down =
                [&["crate".to_owned()], folder.as_slice(), &[String::new()]].concat().join("::");
            let named = named_after(code, &up).into_iter().chain(named_after(code, &down));
            let siblings = named.filter_map(|name| children.get(&name).copied());
            names.entry(child).or_default().extend(siblings.filter(|sibling| *sibling != child));
        }
        // Children that name none of those left are taken away, until none is left.
        while let Some(leaf) = names.iter().find(|(_, named)| named.is_empty()).map(|(n, _)| *n) {
            names.remove(leaf);
            for named in names.values_mut() {
                named.remove(leaf);
            }
        }
        assert!(names.is_empty(), "{root} {}: {names:#?}", folder.join("::"));
    }
}

/// What upstreams send has any shape: `received` of the gateway makes types of it, and nothing else
/// looks for members in JSON, where a value of another shape would panic or be ignored.
#[test]
fn messages_of_upstreams_are_read_in_one_module() {
    let forbidden =
        [".as_object_mut(", ".as_array_mut(", ".as_array()", ".pointer(", "from_value("];
    for Source { root, file, text } in sources() {
        let path = module_path(&file);
        let reads = path.first().is_some_and(|module| module == "received");
        if root != "crates/gateway/src" || reads || is_test(&file) {
            continue;
        }
        let code = code(&text);
        for word in forbidden {
            assert!(!code.contains(word), "{} uses {word}", file.display());
        }
        for (at, _) in code.match_indices("[]") {
            // Strings are left out of the code: this is `value["member"]`, and no list.
            let before = code[..at].chars().next_back();
            let is_index = before.is_some_and(|c| c.is_alphanumeric() || "_)]?".contains(c));
            let around = &code[code[..at].rfind('\n').unwrap_or(0)..at + 2];
            assert!(!is_index, "{} indexes into JSON: {around}", file.display());
        }
    }
}

#[test]
fn no_file_is_long() {
    for Source { file, text, .. } in sources() {
        let lines = text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines: split it", file.display());
    }
}

/// A comment names its subject: a reader shall not have to guess what the word in its place means.
#[test]
fn comments_begin_with_their_subject() {
    const WORDS: [&str; 9] =
        ["What", "It", "Its", "Those", "Who", "Whose", "Whoever", "Where", "As"];

    let text_of = |line: &str| {
        let text = line.trim_start().strip_prefix("//")?;
        Some(text.trim_start_matches(['/', '!']).trim().to_owned())
    };

    for Source { root, file, text } in sources() {
        let mut before = String::new();

        for (number, line) in (1..).zip(text.lines()) {
            let comment = text_of(line).unwrap_or_default();
            let word = comment.split_whitespace().next().unwrap_or_default();
            let is_riddle = WORDS.contains(&word) || comment.starts_with("The same ");
            assert!(
                !(before.is_empty() && is_riddle),
                "{root}/{}:{number}: begin with the subject: {comment}",
                file.display()
            );
            before = comment;
        }
    }
}

/// The arguments of each macro call of this name.
fn macro_calls<'a>(code: &'a str, name: &str) -> Vec<&'a str> {
    let calls = code.match_indices(name).map(|(at, name)| &code[at + name.len()..]);
    let arguments = calls.filter_map(|rest| rest.strip_prefix('(')).map(|rest| {
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        &rest[..end.expect("the call ends")]
    });
    arguments.collect()
}

#[test]
fn labels_of_metrics_are_of_the_type_whose_values_are_bounded() {
    for Source { file, text, .. } in sources() {
        if file.ends_with("metric.rs") {
            continue;
        }
        let code = code(&text);
        for name in ["counter!", "gauge!", "histogram!"] {
            for arguments in macro_calls(&code, name) {
                let has_labels = arguments.contains("=>") || arguments.contains('&');
                assert!(!has_labels, "{}: use crate::metric for labels", file.display());
            }
        }
    }
}

#[test]
fn macro_calls_are_found_with_their_arguments() {
    let code = "gauge!(a).set(b); metrics::gauge!(\n x, y => f(z))";
    assert_eq!(macro_calls(code, "gauge!"), ["a", "\n x, y => f(z)"]);
}

#[test]
fn variables_are_read_where_an_empty_one_counts_as_unset() {
    for Source { file, text, .. } in sources() {
        let is_reader = file.ends_with("environment.rs") || file.starts_with("testing");
        let reads = is_reader || !code(&text).contains("env::var");
        assert!(reads, "{}: read variables by crate::environment", file.display());
    }
}

#[test]
fn paths_are_parsed_as_the_compiler_does() {
    let text = "use crate::{a::B, c::{d, e}, f};\nfn g() { super::super::h::i(); crate::j(); crate::m!(); }\n\
        // crate::comment\nlet s = \"crate::string\";\npub(crate) use super::k;\n\
        #[cfg(test)]\nmod tests {\n use crate::tested;\n}";
    let expected = ["a", "c", "f", "h", "j"].map(str::to_owned);
    assert_eq!(used(&code(text), 2), BTreeSet::from(expected));
}
