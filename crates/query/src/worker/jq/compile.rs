//! [`compile`]: a filter from its text.

use std::borrow::Cow;

use jaq_core::{
    Compiler,
    load::{
        Arena, File, Lexer, Loader, Parser,
        lex::Token,
        parse::{Def, Term},
    },
};
use larder_records::words::cut;

use super::{Data, natives, paths, regex, rewrite::Rewriter};
use crate::QueryError;

pub(super) type Filter = jaq_core::compile::Filter<jaq_core::Native<Data>>;

/// The names of jaq that reach out of a filter.
const UNDEFINED: [&str; 13] = [
    "halt",
    "halt_error",
    "input",
    "inputs",
    "env",
    "input_filename",
    "input_line_number",
    "debug",
    "debug_empty",
    "stderr",
    "stderr_empty",
    "get_search_list",
    "repl",
];

/// Definitions of what jq has and jaq does not.
const DEFINITIONS: &str = include_str!("definitions.jq");

/// Definitions of jaq that the definitions of jq replace.
const REPLACED: [&str; 7] =
    ["nan", "infinite", "tonumber", "toboolean", "totype", "setpath", "delpaths"];

/// Functions of jaq that have another name here, because definitions of jq use them.
const RENAMED: [(&str, &str); 9] = [
    ("range", "range_by"),
    ("limit", "limit_to"),
    ("ltrimstr", "ltrim_text"),
    ("rtrimstr", "rtrim_text"),
    ("implode", "implode_valid"),
    ("reverse", "reverse_list"),
    ("gmtime", "gmtime_whole"),
    ("mktime", "mktime_whole"),
    ("strftime", "strftime_whole"),
];

/// The name of the definition that the text of a filter becomes.
const MAIN: &str = "main_";

/// Compiles a filter.
pub(super) fn compile(text: &str) -> Result<Filter, QueryError> {
    let text = joined_surrogates(text);
    let arena = Arena::default();
    let rewriter = Rewriter::new(&text, &arena);
    let body = rewriter.term(parse(&text)?);

    let is_defined = |name: &str| !UNDEFINED.contains(&name) && !REPLACED.contains(&name);
    let of_jaq = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let own = jaq_core::load::parse(DEFINITIONS, |parser| parser.defs()).unwrap_or_default();
    let main = Def { name: MAIN, args: Vec::new(), body };
    let known = of_jaq.filter(|def| is_defined(def.name)).chain(own);
    let defs = known.map(narrowed).chain([main]);

    let modules = Loader::new(defs)
        .load(&arena, File { code: MAIN, path: () })
        .map_err(|_| refused("it is not a filter"))?;
    let compiled = Compiler::default().with_funs(funs()).compile(modules);
    compiled.map_err(|errors| {
        let undefined = errors.iter().flat_map(|(_, errors)| errors).next();
        refused(&undefined.map_or_else(
            || "it does not compile".to_owned(),
            |(name, kind)| {
                format!("{} {} is not defined{}", kind.as_str(), cut(name, 100), advice(name))
            },
        ))
    })
}

/// The definition, among others of a shorter lifetime.
fn narrowed<'s>(def: Def<&'static str>) -> Def<&'s str> {
    def
}

/// The functions of jaq, and those that take their place.
fn funs() -> impl Iterator<Item = jaq_core::native::Fun<Data>> {
    let of_jaq = || jaq_core::funs::<Data>().chain(jaq_std::funs());
    let renamed = of_jaq().filter_map(|(name, arity, fun)| {
        let (_, other) = RENAMED.iter().find(|(known, _)| *known == name)?;
        Some((*other, arity, fun))
    });
    let own = || natives::funs().chain(paths::funs()).chain(regex::funs());
    let is_own = move |name: &str| own().any(|(own, ..)| own == name);
    let of_jaq = of_jaq().filter(move |(name, ..)| !UNDEFINED.contains(name) && !is_own(name));
    of_jaq.chain(renamed).chain(own())
}

/// The parsed text.
fn parse(text: &str) -> Result<Term<&str>, QueryError> {
    let expected = |expected: &str, found: &str| match found.trim() {
        "" => refused(&format!("expected {expected} at its end")),
        rest => refused(&format!("expected {expected} near {:?}", cut(rest, 40))),
    };

    let tokens = Lexer::new(text).lex().map_err(|errors| match errors.first() {
        Some((kind, found)) => expected(kind.as_str(), found),
        None => refused("it is not a filter"),
    })?;
    if let Some(Token("import" | "include" | "module", _)) = tokens.first() {
        return Err(refused("modules cannot be imported"));
    }

    Parser::new(&tokens).parse(Parser::term).map_err(|errors| match errors.first() {
        Some((kind, found)) => expected(kind.as_str(), Token::opt_as_str(*found, text)),
        None => refused("it is not a filter"),
    })
}

/// Advice about a function of jq that reaches out of the filter.
fn advice(name: &str) -> &'static str {
    match name {
        "input" | "inputs" => {
            ": each value of the content is an input already; slurp gives a list of all"
        }
        "debug" | "stderr" | "halt" | "halt_error" => ": leave it out",
        "input_line_number" => ": the lines of a log have line_no",
        "$__prog_args" | "$ARGS" => ": write values into the filter",
        _ => "",
    }
}

/// The filter with a character in place of each two escapes that are a surrogate pair, which jaq does
/// not read.
fn joined_surrogates(text: &str) -> Cow<'_, str> {
    static PAIR: std::sync::LazyLock<Option<::regex::Regex>> = std::sync::LazyLock::new(|| {
        ::regex::Regex::new(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})").ok()
    });

    let Some(pair) = &*PAIR else { return text.into() };
    pair.replace_all(text, |found: &::regex::Captures<'_>| {
        let unit = |group: usize| u16::from_str_radix(&found[group], 16).unwrap_or_default();
        String::from_utf16_lossy(&[unit(1), unit(2)])
    })
}

/// The error of a filter that cannot be run.
fn refused(problem: &str) -> QueryError {
    QueryError::Refused(format!("jq: {problem}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_valid() {
        for filter in ["del(.a)", "@csv", "@tsv", "INDEX(.a)", "tostream", "fromstream(.)"] {
            assert!(compile(filter).is_ok(), "{filter}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (filter, expected) in [
            ("halt", "jq: filter halt is not defined: leave it out."),
            ("x", "jq: filter x is not defined."),
            (".[", "jq: expected closing bracket at its end."),
            (". |", "jq: expected term at its end."),
            ("include \"a\"; .", "jq: modules cannot be imported."),
            ("import \"a\" as $a; .", "jq: modules cannot be imported."),
        ] {
            let said = compile(filter).err().map(|error| error.to_string());
            assert_eq!(said.as_deref(), Some(expected), "{filter}");
        }
    }
}
