//! [`Walk`]: the objects below a folder in the order of their paths, where the location lists one
//! folder at a time and in any order.

use std::collections::VecDeque;

use object_store::path::{Error, Path};

/// The most folders that are listed before their objects are asked for.
const MAX_AHEAD: usize = 64;

/// The rest of a folder that has not been visited.
pub(super) struct Walk {
    offset: Path,
    /// Objects that come next.
    found: VecDeque<Path>,
    /// The objects and the folders after `found`, in reverse order. Folders end in a slash.
    pending: Vec<String>,
    /// How many folders to list at once the next time. Grows, because a caller that continues
    /// needs more of them.
    ahead: usize,
}

/// The next step of a walk.
pub(super) enum WalkStep {
    Object(Path),
    /// A folder, whose listing [`Walk::listed`] needs before anything after it.
    Folder(Path),
}

impl Walk {
    /// The objects below `folder` whose paths sort after `offset`.
    pub(super) fn new(folder: &Path, offset: Path) -> Self {
        Self { offset, found: VecDeque::new(), pending: vec![format!("{folder}/")], ahead: 1 }
    }

    /// The next object, or the next folder to list.
    pub(super) fn next(&mut self) -> Result<Option<WalkStep>, Error> {
        if let Some(found) = self.found.pop_front() {
            return Ok(Some(WalkStep::Object(found)));
        }

        let Some(next) = self.pending.pop() else { return Ok(None) };
        Ok(Some(match next.strip_suffix('/') {
            Some(folder) => WalkStep::Folder(Path::parse(folder)?),
            None => WalkStep::Object(Path::parse(next)?),
        }))
    }

    /// Adds the folders and objects that are directly in the last folder.
    pub(super) fn listed(&mut self, folders: &[Path], objects: &[Path]) {
        // `0` is the character after the slash, so the objects in a folder sort before this path.
        let folders = folders.iter().filter(|path| *format!("{path}0") > *self.offset.as_ref());
        let objects = objects.iter().filter(|path| **path > self.offset);

        let from = self.pending.len();
        self.pending.extend(folders.map(|path| format!("{path}/")));
        self.pending.extend(objects.map(Path::to_string));
        self.pending[from..].sort_unstable_by(|one, other| other.cmp(one));
    }

    /// How many folders to list now, where listing several costs little more than one.
    pub(super) fn begin_ahead(&mut self) -> usize {
        let now = self.ahead;
        self.ahead = (2 * now).min(MAX_AHEAD);
        now
    }

    /// The next folder, if there is one. Objects before the folder are returned first.
    pub(super) fn go_ahead(&mut self) -> Result<Option<Path>, Error> {
        while let Some(next) = self.pending.pop() {
            match next.strip_suffix('/') {
                Some(folder) => return Path::parse(folder).map(Some),
                None => self.found.push_back(Path::parse(next)?),
            }
        }
        Ok(None)
    }

    /// Puts a folder back, to be listed later.
    pub(super) fn put_back(&mut self, folder: &Path) {
        self.pending.push(format!("{folder}/"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The folders and the objects directly in a folder, in any order.
    fn list(all: &BTreeSet<Path>, folder: &Path) -> (Vec<Path>, Vec<Path>) {
        let mut folders = BTreeSet::new();
        let mut objects = Vec::new();

        for path in all {
            let Some(mut rest) = path.prefix_match(folder) else { continue };
            let Some(name) = rest.next() else { continue };
            let child = folder.clone().join(name);
            if rest.next().is_some() { _ = folders.insert(child) } else { objects.push(child) }
        }

        (folders.into_iter().rev().collect(), objects.into_iter().rev().collect())
    }

    /// The objects of a walk over `all`, which lists folders ahead if `is_ahead`.
    fn walked(all: &BTreeSet<Path>, offset: &Path, is_ahead: bool) -> Vec<Path> {
        let mut walk = Walk::new(&Path::from("a"), offset.clone());
        let mut objects = Vec::new();

        while let Some(next) = walk.next().expect("all are paths") {
            let mut folder = match next {
                WalkStep::Object(object) => {
                    objects.push(object);
                    continue;
                }
                WalkStep::Folder(folder) => Some(folder),
            };

            for _ in 0..if is_ahead { walk.begin_ahead() } else { 1 } {
                let Some(next) = folder.take() else { break };
                let (folders, objects) = list(all, &next);
                walk.listed(&folders, &objects);
                if is_ahead {
                    folder = walk.go_ahead().expect("all are paths");
                }
            }

            if let Some(folder) = folder {
                walk.put_back(&folder);
            }
        }

        objects
    }

    #[test]
    fn objects_come_in_the_order_of_their_paths_however_far_ahead_folders_are_listed() {
        let paths = (0..700).map(|n| match n % 4 {
            0 => format!("a/{n}"),
            1 => format!("a/{}/b/{n}", n / 7),
            2 => format!("a/{}!/{n}", n / 5),
            _ => format!("a/{}/{n}", n / 3),
        });
        let all: BTreeSet<Path> = paths.map(Path::from).collect();

        for offset in ["a", "a/1", "a/11/b/3", "a/99!", "a/zzz"].map(Path::from) {
            let expected: Vec<Path> = all.iter().filter(|path| **path > offset).cloned().collect();
            for is_ahead in [false, true] {
                assert!(walked(&all, &offset, is_ahead) == expected, "{offset}, {is_ahead}");
            }
        }
    }
}
