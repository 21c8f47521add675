//! Items in the order of their registration, found by name.

use std::{collections::HashMap, sync::Arc};

use super::{
    PageOf,
    item::{Item, Listed},
    paging,
};
use crate::protocol::Fault;

/// All items of a kind. Cloned when it changes, so items are shared.
pub(super) struct Collection<T> {
    items: Vec<Arc<T>>,
    index: HashMap<String, usize>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), index: self.index.clone() }
    }
}

impl<T> Default for Collection<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: HashMap::new() }
    }
}

impl<L: Listed, B> Collection<Item<L, B>> {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Item<L, B>>> {
        self.index.get(key).map(|at| &self.items[*at])
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Item<L, B>>> {
        self.items.iter()
    }

    /// Adds an item; a name that is taken is a fault.
    pub(super) fn add(&mut self, item: Item<L, B>, faults: &mut Vec<String>) {
        let key = item.key().to_owned();
        if self.index.contains_key(&key) {
            faults.push(format!("{} {key:?} is registered twice", L::WHAT));
            return;
        }
        self.index.insert(key, self.items.len());
        self.items.push(Arc::new(item));
    }

    /// Removes an item; says whether there was one.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let Some(at) = self.index.remove(key) else { return false };
        self.items.remove(at);
        for position in self.index.values_mut().filter(|position| **position > at) {
            *position -= 1;
        }
        true
    }

    pub(super) fn page(
        &self,
        cursor: Option<&str>,
        size: usize,
        shows: impl Fn(&Item<L, B>) -> bool,
    ) -> Result<PageOf<L>, Fault> {
        let show = |item: &Arc<Item<L, B>>| shows(item).then(|| item.listed.clone());
        paging::page(&self.items, show, L::LIST, cursor, size)
    }
}
