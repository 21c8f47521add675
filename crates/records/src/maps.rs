//! [`Maps`]: finds objects that have a member for each record, such as one for each user.

use super::{List, Pointer};

/// The least number of members that are lists or objects.
const MIN_CONTAINERS: u64 = 4;
/// The least number of members that are scalars. An object with fewer may be a record.
const MIN_SCALARS: u64 = 16;
/// The maximum number of maps that are reported.
const MAX_MAPS: usize = 64;

/// The kind of a member's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    List,
    Text,
    Number,
    Boolean,
    Null,
}

impl ValueKind {
    /// The kind of the scalar that begins with this byte.
    pub(super) fn of_scalar(first: u8) -> Self {
        match first {
            b'"' => Self::Text,
            b't' | b'f' => Self::Boolean,
            b'n' => Self::Null,
            _ => Self::Number,
        }
    }
}

/// Finds the maps among the objects that are in no list.
#[derive(Debug, Clone, Default)]
pub(super) struct Maps {
    open: Vec<OpenObject>,
    found: Vec<List>,
}

/// The members of an object so far.
#[derive(Debug, Clone, Default)]
struct OpenObject {
    members: u64,
    /// The members by the kinds of [`ValueKind`].
    kinds: [u64; 5],
    objects: u64,
    /// The objects that have no member, or begin with the key of the first of them.
    alike: u64,
    /// The key that the first of the objects begins with.
    child_key: Option<String>,
    /// The first key.
    first_key: Option<String>,
}

impl Maps {
    /// Begins an object.
    pub(super) fn begin(&mut self, key: Option<String>) {
        self.member(key);
        self.open.push(OpenObject::default());
    }

    /// Adds a member whose value is no object to the innermost object.
    pub(super) fn add(&mut self, kind: ValueKind, key: Option<String>) {
        self.member(key);
        if let Some(object) = self.open.last_mut() {
            object.kinds[kind as usize] += 1;
        }
    }

    /// Counts a member of the innermost object.
    fn member(&mut self, key: Option<String>) {
        let Some(object) = self.open.last_mut() else { return };
        if object.members == 0 {
            object.first_key = key;
        }
        object.members += 1;
    }

    /// Whether the next member of the innermost object is its first one, whose key matters.
    pub(super) fn wants_key(&self) -> bool {
        self.open.last().is_some_and(|object| object.members == 0)
    }

    /// The number of open objects.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Ends the innermost object; `at` is its pointer, if that is not too deep.
    pub(super) fn end(&mut self, at: Option<&Pointer>) {
        let Some(object) = self.open.pop() else { return };
        if let Some(at) = at.filter(|_| object.is_map()) {
            self.found.push(List { at: at.clone(), items: object.members });
        }

        // Only the largest are kept.
        if self.found.len() > 2 * MAX_MAPS {
            self.shorten();
        }
        if let Some(parent) = self.open.last_mut() {
            parent.add_object(object.first_key);
        }
    }

    fn shorten(&mut self) {
        self.found.sort_by_key(|map| std::cmp::Reverse(map.items));
        self.found.truncate(MAX_MAPS);
    }

    /// The maps, the largest first.
    pub(super) fn finish(mut self) -> Vec<List> {
        self.shorten();
        self.found
    }
}

impl OpenObject {
    fn add_object(&mut self, first_key: Option<String>) {
        self.objects += 1;
        match (&self.child_key, first_key) {
            (_, None) => self.alike += 1,
            (None, Some(key)) => {
                self.child_key = Some(key);
                self.alike += 1;
            }
            (Some(known), Some(key)) => self.alike += u64::from(*known == key),
        }
    }

    /// Whether it has many members, of which nine of ten are of one kind; objects are alike if half
    /// of them begin with the same key.
    fn is_map(&self) -> bool {
        let nulls = self.kinds[ValueKind::Null as usize];
        let others = self.members - nulls;
        let are_most = |count: u64| others > 0 && count * 10 >= others * 9;

        let lists = self.kinds[ValueKind::List as usize];
        if are_most(self.objects) {
            return self.members >= MIN_CONTAINERS && self.alike * 2 >= self.objects;
        }
        if are_most(lists) {
            return self.members >= MIN_CONTAINERS;
        }
        self.members >= MIN_SCALARS && self.kinds.iter().any(|count| are_most(*count))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use crate::Lists;

    fn maps(value: &Value) -> Vec<(String, u64)> {
        let pretty = format!("{value:#}");
        let mut lists = Lists::default().with_maps();
        for block in pretty.as_bytes().chunks(7) {
            assert_eq!(lists.feed(block), Ok(()), "{pretty}");
        }
        let (_, maps) = lists.finish_with_maps().unwrap_or_default();
        maps.into_iter().map(|map| (map.at.to_string(), map.items)).collect()
    }

    /// An object with so many of these members.
    fn many(members: usize, value: impl Fn(usize) -> Value) -> Value {
        (0..members).map(|n| (format!("key {n}"), value(n))).collect::<Map<_, _>>().into()
    }

    #[test]
    fn objects_with_many_members_of_like_values_are_maps() {
        let user = |n: usize| json!({ "id": n, "tags": ["a", "b"], "of": { "x": 1, "y": [2] } });
        let rate = |n: usize| if n == 3 { Value::Null } else { json!(n) };

        for (value, expected) in [
            (json!({ "data": many(564, user), "items": [1] }), vec![("/data", 564)]),
            (
                json!({ "a": { "b": many(30, rate) }, "c": many(40, user) }),
                vec![("/c", 40), ("/a/b", 30)],
            ),
            (many(5, |n| json!([n])), vec![("", 5)]),
            (many(4, |_| json!({})), vec![("", 4)]),
            (
                json!({ "by": many(4, |_| many(20, rate)) }),
                vec![
                    ("/by/key 0", 20),
                    ("/by/key 1", 20),
                    ("/by/key 2", 20),
                    ("/by/key 3", 20),
                    ("/by", 4),
                ],
            ),
            (json!([many(564, user)]), vec![]),
            (
                json!({ "user": { "id": 1 }, "org": { "name": 2 }, "repo": { "x": 3 }, "from": { "y": 4 }, "to": { "z": 5 } }),
                vec![],
            ),
            (json!({ "name": "a", "street": "b", "city": "c", "zip": 1 }), vec![]),
            (many(20, |n| if n % 2 == 0 { json!(n) } else { json!("x") }), vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(at, n)| (at.to_owned(), n)).collect();
            assert_eq!(maps(&value), expected, "{value:.200}");
        }
    }
}
