//! Regular expressions, with lookaround and references to groups. Matches have all groups, those without a match, too; offsets
//! count characters.

use std::{borrow::Cow, cell::RefCell, collections::HashMap, rc::Rc};

use fancy_regex::{Captures, Regex, RegexBuilder};
use jaq_core::{
    Cv, RunPtr, ValR, ValXs,
    native::{Filter, Fun, bome, run, v},
};
use jaq_json::Val;
use larder_records::words::cut;

use super::{
    Data,
    value::{Error, JqValue},
};

/// The largest compiled regular expression in bytes.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// The most expressions that are kept.
const MAX_COMPILED: usize = 64;
/// The most steps back of one search.
const MAX_BACKTRACKS: usize = 1_000_000;

/// The functions `matches`, `split_matches` and `split_`, each with an expression and flags.
pub(super) fn funs() -> impl Iterator<Item = Fun<Data>> {
    let funs: Vec<Filter<RunPtr<Data>>> = vec![
        ("matches", v(2), |cv| search(cv, false, true)),
        ("split_matches", v(2), |cv| search(cv, true, true)),
        ("split_", v(2), |cv| search(cv, true, false)),
    ];
    funs.into_iter().map(run::<Data>)
}

/// The matches, or the texts between them, or both in their order.
fn search(mut cv: Cv<'_, Data>, with_texts: bool, with_matches: bool) -> ValXs<'_, JqValue> {
    let flags = cv.0.pop_var();
    let regex = cv.0.pop_var();
    let search = Search::new(&cv.1, &regex, &flags);
    bome(search.and_then(|search| search.run(with_texts, with_matches)))
}

/// A compiled expression with its flags.
struct Expression {
    regex: Regex,
    is_global: bool,
    skips_empty: bool,
}

/// The source of a compiled expression: its text, its flags, and whether `$` is before a line feed at
/// the end of the text, too.
type RegexSource = (String, String, bool);

thread_local! {
    /// The expressions that the filter has used.
    static COMPILED: RefCell<HashMap<RegexSource, Rc<Expression>>> = RefCell::default();
}

impl Expression {
    /// The expression, which was perhaps compiled for an input before.
    fn find(source: RegexSource) -> Result<Rc<Self>, Error> {
        if let Some(known) = COMPILED.with_borrow(|known| known.get(&source).map(Rc::clone)) {
            return Ok(known);
        }

        let (pattern, flags, before_line_feed) = &source;
        let compiled = Rc::new(Self::compile(pattern, flags, *before_line_feed)?);
        COMPILED.with_borrow_mut(|known| {
            if known.len() >= MAX_COMPILED {
                known.clear();
            }
            known.insert(source, Rc::clone(&compiled));
        });
        Ok(compiled)
    }

    fn compile(pattern: &str, flags: &str, before_line_feed: bool) -> Result<Self, Error> {
        let pattern = if before_line_feed { with_ends(pattern) } else { Cow::Borrowed(pattern) };
        let mut builder = RegexBuilder::new(&pattern);
        builder.delegate_size_limit(MAX_COMPILED_BYTES).backtrack_limit(MAX_BACKTRACKS);
        let mut is_global = false;
        let mut skips_empty = false;

        for flag in flags.chars() {
            match flag {
                'g' => is_global = true,
                'n' => skips_empty = true,
                'i' => drop(builder.case_insensitive(true)),
                'x' => drop(builder.ignore_whitespace(true)),
                // Matches are those of a single line anyway, and the first of the alternatives.
                's' | 'l' => {}
                'p' => drop(builder.dot_matches_new_line(true)),
                flag => {
                    return Err(Error::str(format_args!(
                        "{flag:?} is not a valid modifier string"
                    )));
                }
            }
        }

        let regex = builder.build().map_err(|error| {
            Error::str(format_args!("invalid regex: {}", cut(&error.to_string(), 200)))
        })?;
        Ok(Self { regex, is_global, skips_empty })
    }
}

/// The expression whose `$` is also before a line feed at the end of the text.
fn with_ends(pattern: &str) -> Cow<'_, str> {
    let mut ends = String::new();
    let mut is_escaped = false;
    let mut in_class = 0_usize;
    if !pattern.contains('$') {
        return Cow::Borrowed(pattern);
    }

    for character in pattern.chars() {
        match character {
            _ if is_escaped => {}
            '[' => in_class += 1,
            ']' => in_class = in_class.saturating_sub(1),
            '$' if in_class == 0 => {
                ends.push_str(r"(?=\n?\z)");
                continue;
            }
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
        ends.push(character);
    }
    Cow::Owned(ends)
}

struct Search {
    text: String,
    expression: Rc<Expression>,
}

impl Search {
    fn new(value: &JqValue, regex: &JqValue, flags: &JqValue) -> ValR<Self, JqValue> {
        let text = |value: &JqValue| match &value.0 {
            Val::TStr(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(Error::typ(value.clone(), "string")),
        };

        let pattern = text(regex)?;
        let flags = text(flags)?;
        let text = text(value)?;
        let expression = Expression::find((pattern, flags, text.ends_with('\n')))?;
        Ok(Self { text, expression })
    }

    /// The matches, or the texts between them, or both in their order.
    fn run(&self, with_texts: bool, with_matches: bool) -> ValR<JqValue> {
        let mut parts = Vec::new();
        let mut end = 0;
        let mut position = TextPosition { bytes: 0, characters: 0 };

        let Expression { regex, is_global, skips_empty } = &*self.expression;
        let found = regex.captures_iter(self.text.as_str());
        for captures in found.take(if *is_global { usize::MAX } else { 1 }) {
            let captures = captures.map_err(|_| {
                Error::str("the regular expression takes too many steps over this text")
            })?;
            let Some(whole) = captures.get(0) else { continue };
            if *skips_empty && whole.range().is_empty() {
                continue;
            }

            if with_texts {
                parts.push(JqValue::text(self.text[end..whole.start()].to_owned()));
            }
            end = whole.end();
            if with_matches {
                parts.push(self.groups(&captures, &mut position));
            }
        }

        if with_texts {
            parts.push(JqValue::text(self.text[end..].to_owned()));
        }
        Ok(parts.into_iter().collect())
    }

    /// The match and its groups.
    fn groups(&self, captures: &Captures<'_, str>, position: &mut TextPosition) -> JqValue {
        let groups = self.expression.regex.capture_names().enumerate().map(|(index, name)| {
            let found = captures.get(index);
            let offset = found.map(|found| {
                if index == 0 {
                    position.advance(&self.text, found.start());
                }
                let mut of_group = *position;
                of_group.advance(&self.text, found.start());
                of_group.characters
            });

            let mut members = vec![
                ("offset", offset.map_or(JqValue::from(-1_isize), JqValue::from)),
                ("length", found.map_or(0, |found| found.as_str().chars().count()).into()),
                (
                    "string",
                    found.map_or_else(JqValue::default, |f| JqValue::text(f.as_str().to_owned())),
                ),
            ];
            if index > 0 {
                let name =
                    name.map_or_else(JqValue::default, |name| JqValue::text(name.to_owned()));
                // jq has them in this order for a group without a match.
                if found.is_none() {
                    members.swap(1, 2);
                }
                members.push(("name", name));
            }

            let members = members.into_iter().map(|(key, value)| (Val::utf8_str(key), value.0));
            JqValue(Val::obj(members.collect()))
        });
        groups.collect()
    }
}

/// A place in a text, in bytes and in characters.
#[derive(Clone, Copy)]
struct TextPosition {
    bytes: usize,
    characters: usize,
}

impl TextPosition {
    fn advance(&mut self, text: &str, to: usize) {
        if let Some(passed) = text.get(self.bytes..to) {
            self.characters += passed.chars().count();
            self.bytes = to;
        }
    }
}
