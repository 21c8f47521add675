//! The reference pages in `docs/` agree with the code. `make docs-reference` writes the comments of
//! `larder.example.toml` and the generated part of `docs/configuration.md` anew: the text of a
//! setting is its doc comment.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use http::StatusCode;
use larder::{
    config::Config,
    telemetry::{Kind, METRICS},
};
use serde_json::Value;

const EXAMPLE: &str = include_str!("../../larder.example.toml");
const ALERTS: &str = include_str!("../../deploy/prometheus/alerts.yml");

/// The longest line of a comment in the example configuration.
const COMMENT_WIDTH: usize = 88;

const BEGIN: &str = "<!-- Generated from the settings: make docs-reference -->\n";
const END: &str = "<!-- End of the generated part -->\n";

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

fn page(name: &str) -> String {
    let path = root().join("docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All pages, by their paths from the root of the repository.
fn pages() -> BTreeMap<PathBuf, String> {
    let names = fs::read_dir(root().join("docs")).unwrap();
    let names = names.map(|entry| Path::new("docs").join(entry.unwrap().file_name()));
    let names = names.filter(|name| name.extension().is_some_and(|end| end == "md"));
    let names = names.chain(["deploy/README.md".into()]);
    names.map(|name| (name.clone(), fs::read_to_string(root().join(&name)).unwrap())).collect()
}

/// The text of a page below a heading of the second level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    below.split("\n## ").next().unwrap()
}

/// The cells of all rows of tables, without headings and rules.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let mut rows = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_rule = |line: &str| line.starts_with("|--") || line.starts_with("| --");
        if !line.starts_with('|') || is_rule(line) || lines.peek().is_some_and(|next| is_rule(next))
        {
            continue;
        }
        let cells = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')).unwrap();
        rows.push(cells.split('|').map(str::trim).collect());
    }
    rows
}

/// What stands in backticks.
fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The source files of the crate below a folder.
fn sources(folder: &str) -> Vec<String> {
    let mut folders = vec![root().join(folder)];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                sources.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    sources
}

/// A section of the example configuration, with its settings in their order.
#[derive(Debug, Default)]
struct Section {
    path: String,
    is_list: bool,
    settings: Vec<Setting>,
}

#[derive(Debug)]
struct Setting {
    name: String,
    example: String,
}

/// A line of the example configuration.
enum ExampleLine<'a> {
    Blank,
    Comment,
    Section { path: &'a str, is_list: bool },
    Setting { name: &'a str, example: &'a str },
}

impl<'a> ExampleLine<'a> {
    fn parse(line: &'a str) -> Self {
        let set = line.strip_prefix('#').unwrap_or(line);
        if set.is_empty() {
            return Self::Blank;
        }
        if line.starts_with("# ") {
            return Self::Comment;
        }
        if set.starts_with('[') {
            return Self::Section {
                path: set.trim_matches(['[', ']']),
                is_list: set.starts_with("[["),
            };
        }

        let (name, example) = set.split_once(" = ").unwrap_or_else(|| panic!("{line:?}"));
        Self::Setting { name, example }
    }
}

/// The sections of the example configuration.
fn documented() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in EXAMPLE.lines() {
        match ExampleLine::parse(line) {
            ExampleLine::Blank | ExampleLine::Comment => {}
            ExampleLine::Section { path, is_list } => {
                sections.push(Section { path: path.to_owned(), is_list, settings: Vec::new() });
            }
            ExampleLine::Setting { name, example } => {
                let settings = &mut sections.last_mut().unwrap().settings;
                settings.push(Setting { name: name.to_owned(), example: example.to_owned() });
            }
        }
    }
    sections
}

/// The example configuration with the doc comments of sections and settings as their comments.
fn example() -> String {
    let schema = Config::schema();
    let mut written = String::new();
    let mut section = "";
    // Comment lines that belong to no setting stay as they are.
    let mut comment = Vec::new();

    for line in EXAMPLE.lines() {
        let path = match ExampleLine::parse(line) {
            ExampleLine::Comment => {
                comment.push(line);
                continue;
            }
            ExampleLine::Blank => None,
            ExampleLine::Section { path, .. } => {
                section = path;
                Some(path.to_owned())
            }
            ExampleLine::Setting { name, .. } => Some(format!("{section}.{name}")),
        };

        match path {
            None => comment.drain(..).for_each(|line| written += &format!("{line}\n")),
            Some(path) => {
                comment.clear();
                // The entries of a map have no text of their own.
                if has_text(&schema, &path) {
                    written += &commented(&description(&schema, &path).replace('`', ""));
                }
            }
        }
        written += &format!("{line}\n");
    }

    written
}

/// A text as the lines of a comment.
fn commented(text: &str) -> String {
    let mut lines = String::from("#");
    let mut width = 1;
    for word in text.split(' ') {
        if width + 1 + word.len() > COMMENT_WIDTH {
            lines += "\n#";
            width = 1;
        }
        lines += &format!(" {word}");
        width += 1 + word.len();
    }
    lines + "\n"
}

/// Whether a path is that of a section or a setting with a text of its own.
fn has_text(schema: &Value, path: &str) -> bool {
    let Some((parent, name)) = path.rsplit_once('.') else { return true };
    resolved(schema, node(schema, parent))["properties"][name]["description"].is_string()
}

/// The text of a section or a setting: its doc comment.
fn description(schema: &Value, path: &str) -> String {
    let text = node(schema, path)["description"].as_str();
    let text = text.unwrap_or_else(|| panic!("{path} has no description"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The schema of a setting, without references and without "or nothing".
fn node<'a>(schema: &'a Value, path: &str) -> &'a Value {
    let mut node = schema;
    for name in path.split('.') {
        node = &resolved(schema, node)["properties"][name];
        assert!(node.is_object(), "{path} is no setting");
    }
    node
}

fn resolved<'a>(schema: &'a Value, node: &'a Value) -> &'a Value {
    if let Some(name) = node["$ref"].as_str() {
        return resolved(schema, schema.pointer(&name[1..]).unwrap());
    }
    if node["items"].is_object() {
        return resolved(schema, &node["items"]);
    }
    let some = node["anyOf"].as_array().into_iter().flatten().find(|n| n["type"] != "null");
    some.map_or(node, |some| resolved(schema, some))
}

/// The type of a setting, in words.
fn kind(schema: &Value, node: &Value) -> String {
    if node["items"].is_object() {
        return format!("list of {}s", kind(schema, &node["items"]));
    }
    let node = resolved(schema, node);
    if let Some(options) = node["oneOf"].as_array() {
        let options: Vec<_> = options.iter().map(|o| format!("`{}`", o["const"])).collect();
        return options.join(", ");
    }
    let kinds = node["type"].as_array().cloned().unwrap_or_else(|| vec![node["type"].clone()]);
    let kind = kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null");
    kind.unwrap_or_else(|| panic!("{node} has no type")).to_owned()
}

/// The default of a setting: of the configuration itself, or of the element of a list.
fn default(schema: &Value, section: &Section, setting: &Setting) -> String {
    let path = format!("{}.{}", section.path, setting.name);
    let parent = resolved(schema, node(schema, &section.path));
    let is_required = |name: &String| {
        parent["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    match &node(schema, &path)["default"] {
        _ if is_required(&setting.name) => "required".into(),
        Value::Null => format!("not set; for example `{}`", setting.example),
        Value::String(empty) if empty.is_empty() => "required".into(),
        default => format!("`{default}`"),
    }
}

/// A description as Markdown in a table: pages as links.
fn markdown(text: &str) -> String {
    let punctuation = ['.', ',', ';', ':', '(', ')'];
    let words = text.split(' ').map(|word| {
        let bare = word.trim_matches(punctuation);
        match bare.strip_prefix("docs/") {
            Some(page) => word.replacen(bare, &format!("[{page}]({page})"), 1),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The generated part of the configuration reference, and the environment
/// variables that it names, each with a value.
fn reference() -> (String, Vec<(String, String)>) {
    let schema = Config::schema();
    let sections = documented();
    let mut text = String::new();
    let mut variables = Vec::new();
    let is_list = |path: &str| sections.iter().any(|s| s.is_list && s.path == path);
    // With [] behind the names of lists.
    let key = |path: &str| {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        let mut begin = 0;
        let parts = ends.map(|end| {
            let part = &path[begin..end];
            begin = end;
            if is_list(&path[..end]) { format!("{part}[]") } else { part.to_owned() }
        });
        parts.collect::<String>()
    };
    for section in &sections {
        let (open, close) = if section.is_list { ("[[", "]]") } else { ("[", "]") };
        text += &format!("\n### `{open}{}{close}`\n", section.path);
        let of_section = resolved(&schema, node(&schema, &section.path));
        let is_map = of_section["additionalProperties"].is_object();
        let of_section_text = markdown(&description(&schema, &section.path));
        if !is_map {
            text += &format!("\n{of_section_text}\n");
        }
        // Their keys have a table of their own, in docs/workflows.md.
        if section.path == "workflows.steps" {
            continue;
        }
        text +=
            "\n| Key | Type | Default | Environment variable | Meaning |\n|---|---|---|---|---|\n";
        let key = key(&section.path);
        let is_in_list = key.contains("[]");
        let variable = section.path.replace('.', "__").to_uppercase();
        if is_map {
            let of_value = &of_section["additionalProperties"];
            let example = &section.settings[0];
            let variable = if of_value["type"] == "array" || is_in_list {
                "file only".into()
            } else {
                format!("`LARDER_{variable}__<NAME>`")
            };
            text += &format!(
                "| `{key}.<name>` | {} | not set; for example `{} = {}` | {variable} | {} |\n",
                kind(&schema, of_value),
                example.name,
                example.example,
                of_section_text
            );
            continue;
        }
        for setting in &section.settings {
            let path = format!("{}.{}", section.path, setting.name);
            let of_setting = node(&schema, &path);
            let variable = if is_in_list {
                "file only".into()
            } else {
                let name = format!("LARDER_{variable}__{}", setting.name.to_uppercase());
                let value = setting.example.trim_matches(['[', ']', '"']);
                variables.push((name.clone(), value.to_owned()));
                let separated =
                    if of_setting["items"].is_object() { ", comma-separated" } else { "" };
                format!("`{name}`{separated}")
            };
            text += &format!(
                "| `{key}.{}` | {} | {} | {variable} | {} |\n",
                setting.name,
                kind(&schema, of_setting),
                default(&schema, section, setting),
                markdown(&description(&schema, &path))
            );
        }
    }
    (text + "\n", variables)
}

#[test]
fn the_configuration_reference_has_every_setting_as_it_is() {
    let (path, page) = (root().join("docs/configuration.md"), page("configuration.md"));
    let (before, rest) = page.split_once(BEGIN).expect("the generated part begins");
    let (_, after) = rest.split_once(END).expect("the generated part ends");
    let written = [before, BEGIN, &reference().0, END, after].concat();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, written).unwrap();
    } else {
        assert!(page == written, "docs/configuration.md is out of date: make docs-reference");
    }
}

#[test]
fn the_comments_of_the_example_are_the_doc_comments_of_settings() {
    let written = example();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join("larder.example.toml"), written).unwrap();
    } else {
        assert!(EXAMPLE == written, "larder.example.toml is out of date: make docs-reference");
    }
}

#[test]
fn the_variables_of_the_reference_are_settings() {
    let (_, variables) = reference();
    assert!(variables.len() > 40, "{variables:?}");
    let mut show = Command::new(env!("CARGO_BIN_EXE_larder"));
    let output = show.args(["config", "show"]).envs(variables).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    // The values may contradict each other, but each is read.
    assert!(!said.contains("unknown field") && !said.contains("invalid type"), "{said}");
}

#[test]
fn the_keys_of_a_workflows_step_are_listed() {
    let schema = Config::schema();
    let keys = schema["$defs"]["WorkflowStep"]["properties"].as_object().unwrap();
    let page = page("workflows.md");
    let listed = rows(section(&page, "In the configuration file"));
    let listed: BTreeSet<_> = listed.iter().flat_map(|row| code(row[0])).collect();
    assert_eq!(listed, keys.keys().map(String::as_str).collect());
}

#[test]
fn every_metric_is_listed_with_its_type_and_its_alerts() {
    let page = page("metrics.md");
    let listed = rows(section(&page, "Metrics"));
    let listed: BTreeMap<_, _> = listed.iter().map(|row| (code(row[0])[0], row)).collect();
    assert_eq!(
        listed.keys().copied().collect::<BTreeSet<_>>(),
        METRICS.iter().map(|(_, name, _)| *name).collect()
    );
    let rules: Vec<_> = ALERTS
        .split("- alert: ")
        .skip(1)
        .map(|rule| {
            let (name, rule) = rule.split_once('\n').unwrap();
            let expression = rule.lines().find(|line| line.trim().starts_with("expr: ")).unwrap();
            (name, expression)
        })
        .collect();
    for (kind, name, _) in METRICS {
        let kind = match kind {
            Kind::Counter | Kind::LabelledCounter => "counter",
            Kind::Gauge
            | Kind::DependencyGauge
            | Kind::SharedGauge
            | Kind::UpstreamGauge
            | Kind::QueryGauge
            | Kind::ProcessGauge => "gauge",
            Kind::Histogram => "histogram",
        };
        assert_eq!(listed[name][1], kind, "{name}");
        let uses = |expression: &str| {
            let words = expression.split(|c: char| !c.is_alphanumeric() && c != '_');
            let ends = ["", "_bucket", "_sum", "_count"].map(|end| format!("{name}{end}"));
            words.into_iter().any(|word| ends.iter().any(|end| end == word))
        };
        let alerts = rules.iter().filter(|(_, expression)| uses(expression));
        let alerts: BTreeSet<_> = alerts.map(|(alert, _)| *alert).collect();
        assert_eq!(code(listed[name][4]).into_iter().collect::<BTreeSet<_>>(), alerts, "{name}");
    }
    let described = rows(section(&page, "Alerts"));
    let described: Vec<_> = described.iter().flat_map(|row| code(row[0])).collect();
    assert_eq!(described, rules.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn the_runbook_has_each_alert() {
    let page = page("runbook.md");
    let names = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<_> = names.collect();
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let headings: Vec<_> = headings.filter(|heading| *heading != "Procedures").collect();
    assert_eq!(headings, names);
    for name in names {
        assert!(section(&page, name).contains("\n1. ") || section(&page, name).contains("\n| `"));
    }
}

#[test]
fn sizing_quotes_ratios_of_the_benchmark() {
    let results = fs::read_to_string(root().join("bench/README.md")).unwrap();
    let numbers = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
        let ratios = words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.'));
        ratios.map(str::to_owned).collect()
    };
    let quoted = numbers(section(&page("sizing.md"), "Throughput"));
    assert!(quoted.len() > 20, "{quoted:?}");
    let unknown: Vec<_> = quoted.difference(&numbers(&results)).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?} are not in bench/README.md");
}

#[test]
fn every_label_of_a_metric_is_listed() {
    let page = page("metrics.md");
    let listed = rows(section(&page, "Metrics"));
    let listed: BTreeSet<_> = listed.iter().flat_map(|row| code(row[2])).collect();
    let sources = [sources("src"), sources("crates")].concat();
    let without_spaces = |source: &String| source.split_whitespace().collect::<String>();
    let sources: Vec<String> = sources.iter().map(without_spaces).collect();

    let mut used = BTreeSet::new();
    for call in sources.iter().flat_map(|source| source.split("metric::").skip(1)) {
        let is_call =
            ["counter(", "gauge(", "histogram("].iter().any(|name| call.starts_with(name));
        if !is_call {
            continue;
        }
        let arguments = call.split(';').next().unwrap();
        for before in ["[(\"", ",(\""] {
            let labels = arguments.split(before).skip(1);
            used.extend(labels.filter_map(|rest| rest.split('"').next()));
        }
    }
    assert_eq!(listed, used);
}

#[test]
fn every_json_rpc_code_is_listed() {
    let page = page("errors.md");
    let listed = rows(section(&page, "JSON-RPC error codes"));
    let listed: BTreeSet<_> = listed.iter().flat_map(|row| code(row[0])).collect();
    let mut used = BTreeSet::new();
    // The gateway knows the codes of other servers, too, which it passes on.
    let crates = ["protocol", "runtime", "oauth", "store", "query", "login", "server", "macros"];
    let folders = crates.map(|name| format!("crates/{name}/src"));
    let folders = folders.iter().map(String::as_str).chain(["src"]);
    let sources: Vec<_> = folders.flat_map(sources).collect();
    for source in &sources {
        for (at, _) in source.match_indices("-32") {
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let code = source.get(at..at + 6).filter(|code| digits(&code[1..]));
            let ends = source[at..].chars().nth(6).is_none_or(|next| !next.is_ascii_digit());
            used.extend(code.filter(|_| ends));
        }
    }
    assert_eq!(listed, used);
}

#[test]
fn every_http_status_is_listed() {
    let page = page("errors.md");
    let listed = rows(section(&page, "HTTP status codes"));
    let listed: BTreeSet<u16> = listed.iter().map(|row| row[0].parse().unwrap()).collect();
    let names = (100..600).filter_map(|number| {
        let status = StatusCode::from_u16(number).ok()?;
        let name = status.canonical_reason()?.to_uppercase().replace([' ', '-'], "_");
        Some((name, number))
    });
    let names: BTreeMap<_, _> = names.collect();
    let mut used = BTreeSet::new();
    let sources = sources("crates/server/src/http");
    for after in sources.iter().flat_map(|source| source.split("StatusCode::").skip(1)) {
        let end = after.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap();
        if end > 1 {
            used.insert(names[&after[..end]]);
        }
    }
    assert_eq!(listed, used);
}

#[test]
fn the_index_names_every_page() {
    let index = page("README.md");
    for name in pages().keys().filter(|path| path.starts_with("docs")) {
        let name = name.file_name().unwrap().to_str().unwrap();
        assert!(name == "README.md" || index.contains(&format!("({name})")), "{name}");
    }
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    for (path, page) in pages() {
        for link in page.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&path),
                file => root().join(path.parent().unwrap()).join(file),
            };
            assert!(target.exists(), "{}: {link}", path.display());
            if !anchor.is_empty() {
                let anchors = anchors(&fs::read_to_string(&target).unwrap());
                assert!(anchors.contains(anchor), "{}: {link}", path.display());
            }
        }
    }
}
