//! The functions that change values at paths: assignments, `setpath` and `delpaths`. As in jq, all paths
//! are found before the first change.

use jaq_core::{
    Bind, Ctx, Cv, Exn, Native, RunPtr, ValR, ValT as _, ValX, ValXs,
    box_iter::box_once,
    compile::TermId,
    native::{Filter, Fun, bome, run, v},
    path::Opt,
};
use jaq_json::{Rc, Val};

use super::{
    Data,
    value::{Error, JqValue},
};

/// The functions. Operators that assign are calls of those whose names end with an underscore.
pub(super) fn funs() -> impl Iterator<Item = Fun<Data>> {
    let filters = |n: usize| -> Box<[Bind]> { (0..n).map(|_| Bind::Fun(())).collect() };
    let funs: Vec<Filter<RunPtr<Data>>> = vec![
        ("setpath", v(2), |mut cv| {
            let new = cv.0.pop_var();
            let path = cv.0.pop_var();
            box_once(set(cv.1, &path, &new))
        }),
        ("delpaths", v(1), |mut cv| {
            let paths = cv.0.pop_var();
            bome(delete_listed(cv.1, &paths))
        }),
        ("modify_", filters(2), |cv| box_once(modify(cv))),
        ("assign_", filters(2), |cv| assign(cv, |_, new| Ok(new))),
        ("alternative_", filters(2), |cv| {
            assign(cv, |old, new| Ok(if old.as_bool() { old } else { new }))
        }),
        ("add_", filters(2), |cv| assign(cv, |old, new| old + new)),
        ("subtract_", filters(2), |cv| assign(cv, |old, new| old - new)),
        ("multiply_", filters(2), |cv| assign(cv, |old, new| old * new)),
        ("divide_", filters(2), |cv| assign(cv, |old, new| old / new)),
        ("remainder_", filters(2), |cv| assign(cv, |old, new| old % new)),
    ];

    let last: Fun<Data> = ("last_or_null", filters(1), {
        Native::new(|mut cv| {
            let (f, ctx) = cv.0.pop_fun();
            let last = f.run((ctx, cv.1)).try_fold(JqValue::default(), |_, output| output);
            box_once(last)
        })
        .with_paths(|mut cv| {
            let (f, ctx) = cv.0.pop_fun();
            let none = at_root(JqValue::default());
            box_once(f.paths((ctx, cv.1)).try_fold(none, |_, output| output))
        })
    });
    funs.into_iter().map(run::<Data>).chain([last])
}

/// A value with the empty path, in the form that jaq gives paths.
fn at_root<P: Default>(value: JqValue) -> (JqValue, P) {
    (value, P::default())
}

/// The paths that a filter finds in a value, each with its last part first. No reference to the value
/// is left, so that it is changed in place.
fn find<'a>(
    paths: TermId,
    ctx: Ctx<'a, Data>,
    value: &JqValue,
) -> Result<Vec<Vec<JqValue>>, Exn<'a, JqValue>> {
    let found = paths.paths((ctx, at_root(value.clone())));
    found.map(|found| Ok(found?.1.iter().cloned().collect())).collect()
}

/// The value with the change of the part at a path, whose last part comes first.
fn replace<'a>(
    value: JqValue,
    path: &[JqValue],
    change: &dyn Fn(JqValue) -> ValX<'a, JqValue>,
) -> ValX<'a, JqValue> {
    match path.split_last() {
        None => change(value),
        Some((key, rest)) => value
            .map_index(key, Opt::Essential, |part| std::iter::once(replace(part, rest, change))),
    }
}

/// `paths |= update`: the first output takes the place of a part; a part without an output is deleted.
fn modify(mut cv: Cv<'_, Data>) -> ValX<'_, JqValue> {
    let (update, update_ctx) = cv.0.pop_fun();
    let (paths, ctx) = cv.0.pop_fun();
    let found = find(paths, ctx, &cv.1)?;

    let mut value = cv.1;
    let mut deleted = Vec::new();
    for path in found {
        // A part of null is made, and a slice changed, only if there is a new value.
        let is_slice = path.iter().any(|key| matches!(key.0, Val::Obj(_)));
        if is_slice || value.lacks(&path) {
            let part = path.iter().rev().try_fold(value.clone(), JqValue::index)?;
            if update.run((update_ctx.clone(), part)).next().is_none() {
                deleted.push(path.into_iter().rev().collect());
                continue;
            }
        }

        let is_deleted = std::cell::Cell::new(false);
        value = replace(value, &path, &|part| {
            let new = update.run((update_ctx.clone(), part)).next();
            is_deleted.set(new.is_none());
            new.unwrap_or_else(|| Ok(JqValue::default()))
        })?;
        if is_deleted.get() {
            deleted.push(path.into_iter().rev().collect());
        }
    }
    Ok(delete_all(value, deleted)?)
}

/// `paths = new`, `paths += new` and the like: an output for each output of `new`.
fn assign(
    mut cv: Cv<'_, Data>,
    change: fn(JqValue, JqValue) -> ValR<JqValue>,
) -> ValXs<'_, JqValue> {
    let (new, new_ctx) = cv.0.pop_fun();
    let (paths, ctx) = cv.0.pop_fun();
    let value = cv.1;

    let assigned = move |value: JqValue, ctx, new: JqValue| {
        let found = find(paths, ctx, &value)?;
        found.iter().try_fold(value, |value, path| {
            replace(value, path, &|old| Ok(change(old, new.clone())?))
        })
    };

    let mut outputs = new.run((new_ctx, value.clone()));
    let first = outputs.next();
    match (first, outputs.next()) {
        (None, _) => Box::new(std::iter::empty()),
        (Some(first), None) => {
            // Without this reference the value is changed in place.
            drop(outputs);
            box_once(first.and_then(|new| assigned(value, ctx, new)))
        }
        (Some(first), Some(second)) => {
            let outputs = [first, second].into_iter().chain(outputs);
            Box::new(outputs.map(move |new| assigned(value.clone(), ctx.clone(), new?)))
        }
    }
}

/// The parts of a path that a filter gives as a list.
fn parts(path: &JqValue) -> Result<Vec<JqValue>, Error> {
    match &path.0 {
        Val::Arr(parts) => Ok(parts.iter().cloned().map(JqValue).collect()),
        _ => Err(Error::str("a path must be specified as an array")),
    }
}

fn set<'a>(value: JqValue, path: &JqValue, new: &JqValue) -> ValX<'a, JqValue> {
    let mut path = parts(path)?;
    path.reverse();
    replace(value, &path, &|_| Ok(new.clone()))
}

fn delete_listed(value: JqValue, paths: &JqValue) -> ValR<JqValue> {
    let Val::Arr(listed) = &paths.0 else {
        return Err(Error::str("paths must be specified as an array"));
    };
    let paths = listed.iter().map(|path| parts(&JqValue(path.clone())));
    delete_all(value, paths.collect::<Result<_, _>>()?)
}

/// Deletes the parts at all paths, the last ones first, so that the places of the others stay.
fn delete_all(value: JqValue, mut paths: Vec<Vec<JqValue>>) -> ValR<JqValue> {
    paths.sort();
    paths.dedup();
    paths.iter().rev().try_fold(value, |value, path| delete(value, path))
}

fn delete(value: JqValue, path: &[JqValue]) -> ValR<JqValue> {
    let Some((key, rest)) = path.split_first() else { return Ok(JqValue::default()) };
    if value.0 == Val::Null {
        return Ok(value);
    }
    if rest.is_empty() {
        return value.without(key);
    }

    let part = value.clone().index(key)?;
    if part.0 == Val::Null {
        return Ok(value);
    }
    drop(part);
    let changed = value.map_index(key, Opt::Essential, |part| {
        std::iter::once(delete(part, rest).map_err(Exn::from))
    });
    changed.map_err(|exn| exn.get_err().unwrap_or_else(|_| Error::str("it cannot be deleted")))
}

impl JqValue {
    /// Whether the container of a part, whose path has its last part first, is missing.
    fn lacks(&self, path: &[Self]) -> bool {
        let containers = path.iter().skip(1).rev();
        let mut value = &self.0;
        for key in containers {
            let part = match (value, &key.0) {
                (Val::Obj(members), key @ Val::TStr(_)) => members.get(key),
                (Val::Arr(items), Val::Num(index)) => {
                    Self::position(index, items.len()).and_then(|at| items.get(at))
                }
                (Val::Null, _) => None,
                _ => return false,
            };
            let Some(part) = part else { return true };
            value = part;
        }
        *value == Val::Null && !path.is_empty()
    }

    /// The list or object without an item or a member, if it has it.
    fn without(self, key: &Self) -> ValR<Self> {
        match (self.0, &key.0) {
            (Val::Obj(mut members), key @ Val::TStr(_)) => {
                if members.contains_key(key) {
                    Rc::make_mut(&mut members).shift_remove(key);
                }
                Ok(Self(Val::Obj(members)))
            }
            (Val::Arr(mut items), Val::Num(index)) => {
                let at = Self::position(index, items.len()).filter(|at| *at < items.len());
                if let Some(at) = at {
                    Rc::make_mut(&mut items).remove(at);
                }
                Ok(Self(Val::Arr(items)))
            }
            (Val::Arr(mut items), Val::Obj(slice)) => {
                let slice = Self::slice_of(slice);
                let bounds =
                    Self::bounds(&(slice.start.as_ref()..slice.end.as_ref()), items.len())?;
                Rc::make_mut(&mut items).drain(bounds);
                Ok(Self(Val::Arr(items)))
            }
            (value, _) => Err(Error::index(Self(value), key.clone())),
        }
    }
}
