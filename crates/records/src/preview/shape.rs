//! [`ValueShape`]: the shape of JSON, written like a type. The shapes of a list's items are merged
//! into one.

use std::fmt;

use serde_json::Value;

use crate::words::name_of;

/// The maximum depth.
const MAX_DEPTH: usize = 6;
/// The maximum number of items that are sampled per list: half of them from the
/// start, the others spread over the rest.
const MAX_ITEMS: usize = 100;
/// The maximum number of values that are read.
const MAX_VALUES: usize = 20_000;
/// The maximum number of distinct members that are noted for an object.
const MAX_MEMBERS: usize = 60;
/// The maximum number of members that are listed.
const MAX_LISTED: usize = 30;

/// The merged shape of all values at one position.
#[derive(Debug, Default)]
pub(super) struct ValueShape {
    count: usize,
    /// The names of the types that are not containers.
    scalars: Vec<&'static str>,
    object: Option<ObjectShape>,
    list: Option<ListShape>,
}

#[derive(Debug, Default)]
struct ObjectShape {
    count: usize,
    members: Vec<(String, ValueShape)>,
    has_more: bool,
}

#[derive(Debug)]
struct ListShape {
    item: Box<ValueShape>,
    shortest: usize,
    longest: usize,
    has_more: bool,
}

impl ValueShape {
    /// The shape of one value, whose `open` outer containers continue after the
    /// sample.
    pub(super) fn new(value: &Value, open: usize) -> Self {
        let mut shape = Self::default();
        shape.add(value, open, MAX_DEPTH, &mut MAX_VALUES.clone());
        shape
    }

    /// The merged shape of several values.
    pub(super) fn combined<'a>(values: impl Iterator<Item = &'a Value>) -> Self {
        let mut shape = Self::default();
        let mut left = MAX_VALUES;
        for value in values {
            shape.add(value, 0, MAX_DEPTH, &mut left);
        }
        shape
    }

    fn add(&mut self, value: &Value, open: usize, depth: usize, left: &mut usize) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        self.count += 1;

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
        let list = self.list.get_or_insert_with(|| ListShape {
            item: Box::default(),
            shortest: usize::MAX,
            longest: 0,
            has_more: false,
        });
        list.shortest = list.shortest.min(items.len());
        list.longest = list.longest.max(items.len());
        list.has_more |= open > 0;

        if depth == 0 {
            return;
        }

        let last = items.len().saturating_sub(1);
        let mut add = |index: usize| {
            // Only the last item can continue after the sample.
            let open = if index == last { open.saturating_sub(1) } else { 0 };
            list.item.add(&items[index], open, depth - 1, left);
        };

        let front = items.len().min(MAX_ITEMS / 2);
        (0..front).for_each(&mut add);
        let step = (items.len() - front).div_ceil(MAX_ITEMS / 2).max(1);
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
        object.count += 1;

        if depth == 0 {
            object.has_more |= !members.is_empty();
            return;
        }

        let last = members.len().saturating_sub(1);
        for (index, (name, value)) in members.iter().enumerate() {
            let known = object.members.iter().position(|(known, _)| known == name);
            let slot = match known {
                Some(slot) => slot,
                None if object.members.len() < MAX_MEMBERS => {
                    object.members.push((name.clone(), Self::default()));
                    object.members.len() - 1
                }
                None => {
                    object.has_more = true;
                    // An object with so many names is a map; the other members add nothing.
                    if index >= MAX_MEMBERS * 2 {
                        break;
                    }
                    continue;
                }
            };

            let open = if index == last { open.saturating_sub(1) } else { 0 };
            object.members[slot].1.add(value, open, depth - 1, left);
        }
    }
}

impl fmt::Display for ValueShape {
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
            // Integers among other numbers are numbers.
            if *scalar == "integer" && self.scalars.contains(&"number") {
                continue;
            }
            or(f)?;
            f.write_str(scalar)?;
        }

        if first { f.write_str("?") } else { Ok(()) }
    }
}

impl fmt::Display for ObjectShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members.is_empty() {
            return f.write_str(if self.has_more { "{ … }" } else { "{}" });
        }

        f.write_str("{ ")?;
        for (index, (name, shape)) in self.members.iter().take(MAX_LISTED).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let optional = if shape.count < self.count { "?" } else { "" };
            write!(f, "{comma}{}{optional}: {shape}", name_of(name, 80))?;
        }
        if self.has_more || self.members.len() > MAX_LISTED {
            f.write_str(", …")?;
        }
        f.write_str(" }")
    }
}

impl fmt::Display for ListShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plus = if self.has_more { "+" } else { "" };
        match (self.shortest, self.longest) {
            (_, 0) => f.write_str("[]"),
            (least, most) if least == most => write!(f, "[{most}{plus} x {}]", self.item),
            (least, most) => write!(f, "[{least}-{most}{plus} x {}]", self.item),
        }
    }
}
