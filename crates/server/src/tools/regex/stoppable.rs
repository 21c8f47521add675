//! [`StoppableRegex`]: a regular expression whose search looks at a [`Stop`] while it runs. The engines
//! of the library cannot be stopped within a search, and some searches take minutes.

use std::ops::Range;

use larder_runtime::compute::Stop;
use regex_automata::{
    nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures},
    util::primitives::StateID,
};
use regex_syntax::{
    ParserBuilder, escape,
    hir::{Hir, Look},
};

use super::Syntax;

/// How many states are visited between two looks at the stop: less than a millisecond.
const STATES_BETWEEN_LOOKS: usize = 1 << 16;

/// A regular expression that is simulated state by state, with the rules of the matcher that
/// [`matcher`](super::matcher) makes.
#[derive(Debug)]
pub(super) struct StoppableRegex {
    nfa: NFA,
    /// A match never has these bytes.
    terminators: &'static [u8],
}

/// The states in which a search is, the preferred first, with the start of each one's match.
struct Threads {
    order: Vec<StateID>,
    /// For each state its index in `order`, if `order` has the state there.
    index: Vec<usize>,
    starts: Vec<usize>,
}

/// Counts visited states, and looks at the stop now and then.
struct Steps<'a> {
    visited: usize,
    stop: &'a Stop,
}

impl StoppableRegex {
    /// Compiles the query. `None` if the compiled query is larger than `max_bytes`.
    pub(super) fn new(
        query: &str,
        syntax: Syntax,
        is_crlf: bool,
        max_bytes: usize,
    ) -> Option<Self> {
        let hir = parse(query, syntax, is_crlf)?;
        let config = Config::new()
            .utf8(false)
            .nfa_size_limit(Some(max_bytes))
            .which_captures(WhichCaptures::None);

        let nfa = Compiler::new().configure(config).build_from_hir(&hir).ok()?;
        let terminators: &[u8] = if is_crlf { b"\r\n" } else { b"\n" };
        Some(Self { nfa, terminators })
    }

    /// The first match that begins at or after `from`. `None` if there is none, or once `stop` is
    /// set.
    pub(super) fn find_at(&self, text: &[u8], from: usize, stop: &Stop) -> Option<Range<usize>> {
        let mut steps = Steps { visited: 0, stop };
        let states = self.nfa.states().len();
        let mut current = Threads::new(states);
        let mut next = Threads::new(states);
        let mut stack = Vec::new();
        let mut found = None;

        for at in from..=text.len() {
            if found.is_none() {
                let start = self.nfa.start_anchored();
                self.follow(&mut current, &mut stack, start, at, (text, at), &mut steps)?;
            } else if current.order.is_empty() {
                break;
            }
            let byte = text.get(at).filter(|byte| !self.terminators.contains(byte));

            for index in 0..current.order.len() {
                let id = current.order[index];
                let start = current.starts[index];
                steps.visit()?;
                if matches!(self.nfa.state(id), State::Match { .. }) {
                    // Threads behind this state find matches that are less preferred.
                    found = Some(start..at);
                    break;
                }
                if let Some(id) = byte.and_then(|byte| self.after(id, *byte)) {
                    self.follow(&mut next, &mut stack, id, start, (text, at + 1), &mut steps)?;
                }
            }

            std::mem::swap(&mut current, &mut next);
            next.clear();
        }
        found
    }

    /// The state that follows a state at this byte.
    fn after(&self, id: StateID, byte: u8) -> Option<StateID> {
        match self.nfa.state(id) {
            State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
            State::Sparse(transitions) => transitions.matches_byte(byte),
            State::Dense(transitions) => transitions.matches_byte(byte),
            _ => None,
        }
    }

    /// Adds a state, and all that follow it without a byte, in their order. `None` once the stop is
    /// set.
    fn follow(
        &self,
        threads: &mut Threads,
        stack: &mut Vec<StateID>,
        id: StateID,
        start: usize,
        (text, at): (&[u8], usize),
        steps: &mut Steps<'_>,
    ) -> Option<()> {
        stack.clear();
        stack.push(id);

        while let Some(id) = stack.pop() {
            steps.visit()?;
            if !threads.insert(id, start) {
                continue;
            }

            match self.nfa.state(id) {
                State::Look { look, next } => {
                    if self.nfa.look_matcher().matches(*look, text, at) {
                        stack.push(*next);
                    }
                }
                State::Union { alternates } => stack.extend(alternates.iter().rev()),
                State::BinaryUnion { alt1, alt2 } => stack.extend([*alt2, *alt1]),
                State::Capture { next, .. } => stack.push(*next),
                State::ByteRange { .. }
                | State::Sparse(_)
                | State::Dense(_)
                | State::Fail
                | State::Match { .. } => {}
            }
        }
        Some(())
    }
}

impl Threads {
    fn new(states: usize) -> Self {
        Self { order: Vec::new(), index: vec![0; states], starts: Vec::new() }
    }

    /// Adds a state behind the others; false if it is here already.
    fn insert(&mut self, id: StateID, start: usize) -> bool {
        let index = self.index[id.as_usize()];
        if self.order.get(index) == Some(&id) {
            return false;
        }

        self.index[id.as_usize()] = self.order.len();
        self.order.push(id);
        self.starts.push(start);
        true
    }

    fn clear(&mut self) {
        self.order.clear();
        self.starts.clear();
    }
}

impl Steps<'_> {
    /// Counts a state; `None` once the stop is set.
    fn visit(&mut self) -> Option<()> {
        self.visited += 1;
        let looks = self.visited.is_multiple_of(STATES_BETWEEN_LOOKS);
        (!looks || !self.stop.is_set()).then_some(())
    }
}

/// The expression as ripgrep's engine reads it.
pub(super) fn parse(query: &str, syntax: Syntax, is_crlf: bool) -> Option<Hir> {
    let text = if syntax.literal { escape(query) } else { query.to_owned() };

    let mut parser = ParserBuilder::new();
    parser.utf8(false).multi_line(true).crlf(is_crlf).case_insensitive(syntax.ignore_case);
    let hir = parser.build().parse(&format!("(?:{text})")).ok()?;

    Some(if syntax.whole_word {
        let [before, after] = [Look::WordStartHalfUnicode, Look::WordEndHalfUnicode].map(Hir::look);
        Hir::concat(vec![before, hir, after])
    } else {
        hir
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use grep_matcher::Matcher;
    use proptest::prelude::*;

    use super::{
        super::{LineMatcher, MAX_COMPILED_BYTES, matcher},
        *,
    };

    fn stoppable(query: &str, syntax: Syntax) -> (std::sync::Arc<LineMatcher>, StoppableRegex) {
        let matcher = matcher(query, syntax).unwrap();
        let regex = StoppableRegex::new(query, syntax, matcher.is_crlf, MAX_COMPILED_BYTES);
        (matcher, regex.unwrap())
    }

    /// Compares all matches from each offset with those of ripgrep's engine.
    fn compare(query: &str, syntax: Syntax, line: &[u8]) {
        let (matcher, regex) = stoppable(query, syntax);

        for from in 0..=line.len() {
            let expected = matcher.engine().find_at(line, from).unwrap();
            let expected = expected.map(|found| found.start()..found.end());
            let found = regex.find_at(line, from, &Stop::default());
            assert_eq!(found, expected, "{query:?} {syntax:?} {line:?} from {from}");
        }
    }

    const QUERIES: [&str; 20] = [
        "a",
        "ab|a|abc",
        "a*?b",
        "(a|b)*c",
        "a{2,3}",
        "^a",
        "b$",
        "^",
        "",
        r"\bä",
        r"\b\w+\b",
        r"a\s*b",
        "[^b]+",
        ".*c",
        "(?i)Ä",
        r"\B.",
        r"(?-u:\b)a",
        r"(?-u:\xC3)",
        r"a?\rb",
        r"\A.a",
    ];

    proptest! {
        #[test]
        fn it_finds_what_ripgreps_engine_finds(
            query in prop::sample::select(&QUERIES[..]),
            line in "[abcäÄ \r.]{0,12}",
            ignore_case: bool,
            whole_word: bool,
            literal: bool,
        ) {
            let syntax = Syntax { ignore_case, literal, whole_word };
            compare(query, syntax, line.as_bytes());
        }

        #[test]
        fn it_searches_any_bytes(line in prop::collection::vec(any::<u8>(), 0..12)) {
            let line: Vec<u8> = line.into_iter().filter(|byte| *byte != b'\n').collect();
            for query in QUERIES {
                compare(query, Syntax::default(), &line);
            }
        }
    }
}
