//! [`Rewriter`]: changes a parsed filter where jaq computes another result than jq.

use std::{cell::RefCell, collections::HashSet};

use jaq_core::{
    load::{
        Arena,
        lex::StrPart,
        parse::{BinaryOp, Def, Pattern, Term},
        span,
    },
    ops::Math,
    path::{Opt, Part, Path},
};

/// The formats that strings can have.
const FORMATS: [&str; 12] = [
    "@text", "@json", "@csv", "@tsv", "@html", "@uri", "@urid", "@sh", "@base64", "@base64d",
    "@base32", "@base32d",
];

/// Rewrites the terms of one filter.
pub(super) struct Rewriter<'s> {
    /// The text of the filter, for the numbers of lines.
    text: &'s str,
    /// The names that the rewriter makes.
    arena: &'s Arena,
    /// The filters without arguments that the terms so far have called.
    called: RefCell<HashSet<&'s str>>,
}

impl<'s> Rewriter<'s> {
    pub(super) fn new(text: &'s str, arena: &'s Arena) -> Self {
        Self { text, arena, called: RefCell::default() }
    }

    /// The term with the results of jq.
    pub(super) fn term(&self, term: Term<&'s str>) -> Term<&'s str> {
        match term {
            Term::Var(name @ "$__loc__") => self.location(name),
            // No variable of the environment gets to a filter.
            Term::Var("$ENV") => Term::Obj(Vec::new()),
            Term::Str(Some(format), _) | Term::Call(format, _) if is_unknown_format(format) => {
                let problem = format!("{} is not a valid format", format.trim_start_matches('@'));
                Term::Call("error", vec![text(self.arena.alloc(problem))])
            }

            Term::Str(format, parts) => self.interpolated(format, parts),
            Term::Arr(items) => Term::Arr(items.map(|items| self.boxed(*items))),
            Term::Obj(members) => {
                Term::Obj(members.into_iter().map(|member| self.member(member)).collect())
            }
            Term::Neg(value) => Term::Neg(self.boxed(*value)),
            Term::BinOp(left, op, right) => self.operation(*left, op, *right),
            Term::Label(name, body) => Term::Label(name, self.boxed(*body)),
            Term::Fold(name, inputs, pattern, args) => {
                let args = args.into_iter().map(|arg| self.term(arg)).collect();
                fold(name, self.boxed(*inputs), self.pattern(pattern), args)
            }
            Term::TryCatch(body, catch) => {
                Term::TryCatch(self.boxed(*body), catch.map(|catch| self.boxed(*catch)))
            }
            Term::IfThenElse(branches, otherwise) => {
                let branches =
                    branches.into_iter().map(|(test, then)| (self.term(test), self.term(then)));
                let otherwise = otherwise.map(|otherwise| self.boxed(*otherwise));
                Term::IfThenElse(branches.collect(), otherwise)
            }
            Term::Def(defs, body) => {
                Term::Def(defs.into_iter().map(|def| self.def(def)).collect(), self.boxed(*body))
            }
            Term::Call(name, args) => {
                if args.is_empty() {
                    self.called.borrow_mut().insert(name);
                }
                Term::Call(name, args.into_iter().map(|arg| self.term(arg)).collect())
            }
            Term::Path(value, path) => Term::Path(self.boxed(*value), self.path(path)),
            other => other,
        }
    }

    fn boxed(&self, term: Term<&'s str>) -> Box<Term<&'s str>> {
        Box::new(self.term(term))
    }

    /// The place of a variable `$__loc__`.
    fn location(&self, name: &'s str) -> Term<&'s str> {
        let before = &self.text[..span(self.text, name).start];
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        Term::Obj(vec![
            (text("file"), Some(text("<top-level>"))),
            (text("line"), Some(Term::Num(self.arena.alloc(line.to_string())))),
        ])
    }

    /// A string whose first interpolation varies fastest.
    fn interpolated(
        &self,
        format: Option<&'s str>,
        parts: Vec<StrPart<&'s str, Term<&'s str>>>,
    ) -> Term<&'s str> {
        let mut bound = Vec::new();
        let mut rewritten = Vec::with_capacity(parts.len());
        for part in parts {
            rewritten.push(match part {
                StrPart::Term(term) if is_single(&term) => StrPart::Term(self.term(term)),
                StrPart::Term(term) => {
                    let name: &'s str = self.arena.alloc(format!("$ {}", bound.len()));
                    bound.push((name, self.term(term)));
                    StrPart::Term(Term::Var(name))
                }
                other => other,
            });
        }

        // The order of the results of a single interpolation is right without a variable.
        if let [(name, _)] = bound[..] {
            for part in &mut rewritten {
                if matches!(part, StrPart::Term(Term::Var(known)) if *known == name)
                    && let Some((_, term)) = bound.pop()
                {
                    *part = StrPart::Term(term);
                }
            }
        }
        bound.into_iter().fold(Term::Str(format, rewritten), |body, (name, term)| {
            let bind = BinaryOp::Pipe(Some(Pattern::Var(name)));
            Term::BinOp(Box::new(term), bind, Box::new(body))
        })
    }

    fn member(
        &self,
        (key, value): (Term<&'s str>, Option<Term<&'s str>>),
    ) -> (Term<&'s str>, Option<Term<&'s str>>) {
        match (key, value) {
            (Term::Var(name), None) if matches!(name, "$ENV" | "$__loc__") => {
                (text(&name[1..]), Some(self.term(Term::Var(name))))
            }
            // A key without a value is its own name.
            (key, None) => (key, None),
            (key, Some(value)) => (self.term(key), Some(self.term(value))),
        }
    }

    fn operation(
        &self,
        left: Term<&'s str>,
        op: BinaryOp<&'s str>,
        right: Term<&'s str>,
    ) -> Term<&'s str> {
        let left = self.term(left);
        let right = self.term(right);
        let name = match op {
            BinaryOp::Assign => "assign_",
            BinaryOp::Update => "modify_",
            BinaryOp::UpdateAlt => "alternative_",
            BinaryOp::UpdateMath(Math::Add) => "add_",
            BinaryOp::UpdateMath(Math::Sub) => "subtract_",
            BinaryOp::UpdateMath(Math::Mul) => "multiply_",
            BinaryOp::UpdateMath(Math::Div) => "divide_",
            BinaryOp::UpdateMath(Math::Rem) => "remainder_",
            BinaryOp::Pipe(pattern) => {
                let pattern = pattern.map(|pattern| self.pattern(pattern));
                return Term::BinOp(Box::new(left), BinaryOp::Pipe(pattern), Box::new(right));
            }
            op => return Term::BinOp(Box::new(left), op, Box::new(right)),
        };
        Term::Call(name, vec![left, right])
    }

    fn pattern(&self, pattern: Pattern<&'s str>) -> Pattern<&'s str> {
        match pattern {
            Pattern::Var(name) => Pattern::Var(name),
            Pattern::Arr(items) => {
                Pattern::Arr(items.into_iter().map(|item| self.pattern(item)).collect())
            }
            Pattern::Obj(members) => {
                let members =
                    members.into_iter().map(|(key, item)| (self.term(key), self.pattern(item)));
                Pattern::Obj(members.collect())
            }
        }
    }

    fn path(&self, path: Path<Term<&'s str>>) -> Path<Term<&'s str>> {
        let parts = path.0.into_iter().map(|(part, opt)| {
            let part = match part {
                Part::Index(index) => Part::Index(self.term(index)),
                Part::Range(from, to) => {
                    Part::Range(from.map(|from| self.term(from)), to.map(|to| self.term(to)))
                }
            };
            (part, opt)
        });
        Path(parts.collect())
    }

    /// A definition, whose parameters `$x` that its body calls are filters `x`, too.
    fn def(&self, def: Def<&'s str>) -> Def<&'s str> {
        let Def { name, mut args, body } = def;
        let mut body = self.term(body);

        for arg in args.iter_mut().rev() {
            let Some(filter) = arg.strip_prefix('$') else { continue };
            if !self.called.borrow().contains(filter) {
                continue;
            }
            let bind = BinaryOp::Pipe(Some(Pattern::Var(*arg)));
            let outputs = Term::Call(filter, Vec::new());
            body = Term::BinOp(Box::new(outputs), bind, Box::new(body));
            *arg = filter;
        }
        Def { name, args, body }
    }
}

fn is_unknown_format(name: &str) -> bool {
    name.starts_with('@') && !FORMATS.contains(&name)
}

fn text(text: &str) -> Term<&str> {
    Term::Str(None, vec![StrPart::Str(text)])
}

/// A fold whose state is the last output of its update, or null if there is none.
fn fold<'s>(
    name: &'s str,
    inputs: Box<Term<&'s str>>,
    pattern: Pattern<&'s str>,
    mut args: Vec<Term<&'s str>>,
) -> Term<&'s str> {
    let Some(update) = args.get_mut(1).filter(|update| !is_single(update)) else {
        return Term::Fold(name, inputs, pattern, args);
    };

    if name == "reduce" {
        *update = Term::Call("last_or_null", vec![std::mem::take(update)]);
        return Term::Fold(name, inputs, pattern, args);
    }

    // The state of foreach is the list of all outputs, each of which is projected.
    let piped = |left, right| Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right));
    let part = |part| Term::Path(Box::new(Term::Id), Path(vec![(part, Opt::Essential)]));
    let last = part(Part::Index(Term::Neg(Box::new(Term::Num("1")))));
    *update = Term::Arr(Some(Box::new(piped(last, std::mem::take(update)))));
    let outputs = part(Part::Range(None, None));

    let initial = std::mem::take(&mut args[0]);
    args[0] = piped(initial, Term::Arr(Some(Box::new(Term::Id))));
    match args.pop() {
        Some(projection) if args.len() == 2 => args.push(piped(outputs, projection)),
        update => args.extend(update.into_iter().chain([outputs])),
    }
    Term::Fold(name, inputs, pattern, args)
}

/// The functions that assign one value to all paths.
const ASSIGNMENTS: [&str; 7] =
    ["assign_", "alternative_", "add_", "subtract_", "multiply_", "divide_", "remainder_"];

/// Whether a term has exactly one output, or an error, judging by its form.
fn is_single(term: &Term<&str>) -> bool {
    let all = |terms: &[&Term<&str>]| terms.iter().all(|term| is_single(term));
    match term {
        Term::Id | Term::Num(_) | Term::Var(_) | Term::Arr(_) | Term::Call("modify_", _) => true,
        Term::Str(_, parts) => parts.iter().all(|part| match part {
            StrPart::Term(term) => is_single(term),
            StrPart::Str(_) | StrPart::Char(_) => true,
        }),
        Term::Obj(members) => members
            .iter()
            .all(|(key, value)| is_single(key) && value.as_ref().is_none_or(is_single)),
        Term::Neg(value) => is_single(value),
        Term::BinOp(left, op, right) => match op {
            BinaryOp::Pipe(None | Some(Pattern::Var(_)))
            | BinaryOp::Or
            | BinaryOp::And
            | BinaryOp::Math(_)
            | BinaryOp::Cmp(_) => all(&[left, right]),
            BinaryOp::Assign | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => is_single(right),
            BinaryOp::Update => true,
            BinaryOp::Comma | BinaryOp::Alt | BinaryOp::Pipe(Some(_)) => false,
        },
        Term::Call(name, args) if ASSIGNMENTS.contains(name) => args.last().is_some_and(is_single),
        Term::IfThenElse(branches, otherwise) => {
            branches.iter().all(|(test, then)| all(&[test, then]))
                && otherwise.as_deref().is_none_or(is_single)
        }
        Term::Path(value, path) => {
            is_single(value)
                && path.0.iter().all(|part| match part {
                    (Part::Index(index), Opt::Essential) => is_single(index),
                    _ => false,
                })
        }
        _ => false,
    }
}
