//! What JSON looks like, in the manner of a type: the values of a list are
//! laid over each other.

use std::fmt;

use serde_json::Value;

/// How deep it goes.
const DEPTH: usize = 6;
/// How many items of one list are looked at: half from the front, the rest
/// spread over what follows.
const ITEMS: usize = 100;
/// How many values are looked at in all.
const VALUES: usize = 20_000;
/// How many members of an object are told apart.
const MEMBERS: usize = 60;
/// How many of them are named.
const NAMED: usize = 30;

/// What all values in one place have in common.
#[derive(Debug, Default)]
pub(super) struct Shape {
    seen: usize,
    /// Names of the kinds that are no containers.
    scalars: Vec<&'static str>,
    object: Option<Object>,
    list: Option<List>,
}

#[derive(Debug, Default)]
struct Object {
    seen: usize,
    members: Vec<(String, Shape)>,
    more: bool,
}

#[derive(Debug)]
struct List {
    item: Box<Shape>,
    shortest: usize,
    longest: usize,
    goes_on: bool,
}

impl Shape {
    /// Of one value, whose outermost containers go on beyond what is seen.
    pub(super) fn of(value: &Value, open: usize) -> Self {
        let mut shape = Self::default();
        shape.add(value, open, DEPTH, &mut VALUES.clone());
        shape
    }

    /// Of values that stand in the same place.
    pub(super) fn of_all<'a>(values: impl Iterator<Item = &'a Value>) -> Self {
        let (mut shape, mut left) = (Self::default(), VALUES);
        for value in values {
            shape.add(value, 0, DEPTH, &mut left);
        }
        shape
    }

    fn add(&mut self, value: &Value, open: usize, depth: usize, left: &mut usize) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        self.seen += 1;
        let scalar = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(n) if n.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(items) => return self.add_list(items, open, depth, left),
            Value::Object(members) => return self.add_object(members, open, depth, left),
        };
        if !self.scalars.contains(&scalar) {
            self.scalars.push(scalar);
        }
    }

    fn add_list(&mut self, items: &[Value], open: usize, depth: usize, left: &mut usize) {
        let list = self.list.get_or_insert_with(|| List {
            item: Box::default(),
            shortest: usize::MAX,
            longest: 0,
            goes_on: false,
        });
        list.shortest = list.shortest.min(items.len());
        list.longest = list.longest.max(items.len());
        list.goes_on |= open > 0;
        if depth == 0 {
            return;
        }
        let last = items.len().saturating_sub(1);
        let mut add = |at: usize| {
            // Only the last one can be what goes on.
            let open = if at == last { open.saturating_sub(1) } else { 0 };
            list.item.add(&items[at], open, depth - 1, left);
        };
        let front = items.len().min(ITEMS / 2);
        (0..front).for_each(&mut add);
        let step = (items.len() - front).div_ceil(ITEMS / 2).max(1);
        (front..items.len()).step_by(step).for_each(&mut add);
    }

    fn add_object(
        &mut self,
        members: &serde_json::Map<String, Value>,
        open: usize,
        depth: usize,
        left: &mut usize,
    ) {
        let object = self.object.get_or_insert_default();
        object.seen += 1;
        if depth == 0 {
            object.more |= !members.is_empty();
            return;
        }
        let last = members.len().saturating_sub(1);
        for (at, (name, value)) in members.iter().enumerate() {
            let known = object.members.iter().position(|(known, _)| known == name);
            let place = match known {
                Some(place) => place,
                None if object.members.len() < MEMBERS => {
                    object.members.push((name.clone(), Self::default()));
                    object.members.len() - 1
                }
                None => {
                    object.more = true;
                    // An object with so many names is a map; more of them tell nothing.
                    if at >= MEMBERS * 2 {
                        break;
                    }
                    continue;
                }
            };
            let open = if at == last { open.saturating_sub(1) } else { 0 };
            object.members[place].1.add(value, open, depth - 1, left);
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let mut or = |f: &mut fmt::Formatter<'_>| {
            if !std::mem::take(&mut first) {
                f.write_str(" | ")?;
            }
            Ok(())
        };
        if let Some(object) = &self.object {
            or(f)?;
            object.fmt(f)?;
        }
        if let Some(list) = &self.list {
            or(f)?;
            list.fmt(f)?;
        }
        for scalar in &self.scalars {
            // A number that happens to be whole is a number all the same.
            if *scalar == "integer" && self.scalars.contains(&"number") {
                continue;
            }
            or(f)?;
            f.write_str(scalar)?;
        }
        if first { f.write_str("?") } else { Ok(()) }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members.is_empty() {
            return f.write_str(if self.more { "{ … }" } else { "{}" });
        }
        f.write_str("{ ")?;
        for (at, (name, shape)) in self.members.iter().take(NAMED).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let optional = if shape.seen < self.seen { "?" } else { "" };
            write!(f, "{comma}{}{optional}: {shape}", super::words::cut(name, 80))?;
        }
        if self.more || self.members.len() > NAMED {
            f.write_str(", …")?;
        }
        f.write_str(" }")
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plus = if self.goes_on { "+" } else { "" };
        match (self.shortest, self.longest) {
            (_, 0) => f.write_str("[]"),
            (least, most) if least == most => write!(f, "[{most}{plus} x {}]", self.item),
            (least, most) => write!(f, "[{least}-{most}{plus} x {}]", self.item),
        }
    }
}
