//! Items in the order of registration, with an index by key.

use std::{collections::BTreeMap, sync::Arc};

use larder_protocol::Fault;

use super::{
    item::{Item, Listed},
    paging::{self, ListPage},
};

/// All items of one kind. Items are shared, because an edit clones the collection.
pub(super) struct Collection<T> {
    items: Vec<Arc<T>>,
    index: BTreeMap<String, usize>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), index: self.index.clone() }
    }
}

impl<T> Default for Collection<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: BTreeMap::new() }
    }
}

impl<L: Listed, B> Collection<Item<L, B>> {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Item<L, B>>> {
        self.index.get(key).map(|position| &self.items[*position])
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Item<L, B>>> {
        self.items.iter()
    }

    /// Adds an item. Reports a duplicate key.
    pub(super) fn add(&mut self, item: Item<L, B>, problems: &mut Vec<String>) {
        let key = item.key().to_owned();
        if let Some(first) = self.get(&key) {
            let functions = match (first.origin, item.origin) {
                (Some(first), Some(second)) if first != second => {
                    format!(": by the functions {first} and {second}")
                }
                (Some(function), _) | (None, Some(function)) => {
                    format!(", once by the function {function}")
                }
                (None, None) => String::new(),
            };
            problems.push(format!("{} {key:?} is registered twice{functions}", L::KIND));
            return;
        }

        self.index.insert(key, self.items.len());
        self.items.push(Arc::new(item));
    }

    /// Removes an item. Returns whether it existed.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let Some(removed) = self.index.remove(key) else { return false };
        self.items.remove(removed);
        for position in self.index.values_mut().filter(|position| **position > removed) {
            *position -= 1;
        }
        true
    }

    pub(super) fn page(
        &self,
        cursor: Option<&str>,
        size: usize,
        is_shown: impl Fn(&Item<L, B>) -> bool,
    ) -> Result<ListPage<L>, Fault> {
        let show = |item: &Arc<Item<L, B>>| is_shown(item).then(|| item.listed.clone());
        paging::page(&self.items, show, L::LIST, cursor, size)
    }
}
