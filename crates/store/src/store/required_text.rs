//! [`RequiredText`]: selects the blocks that a search has to read, by their filters.

use std::{iter, ops::Range, sync::Arc};

use larder_identity::Owner;
use larder_runtime::compute::{Busy, Compute};

use super::{
    Block, StoredResource, block_cache,
    block_filter::{BlockFilter, MIN_TEXT_BYTES, fold},
};

/// The number of bytes of a text that are compared.
const MAX_TEXT_BYTES: usize = 64;

/// The maximum number of alternatives. With more, few blocks would be left out.
const MAX_TEXTS: usize = 32;

/// Texts of which each line that a search looks for contains at least one, ignoring the case of
/// ASCII letters. Where case is ignored, a letter of a text also stands for the non-ASCII
/// characters that match it: `ſ` and the Kelvin sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredText(Arc<[Box<[u8]>]>);

impl RequiredText {
    /// The length of the shortest text that can leave out a block, in bytes.
    pub const MIN_BYTES: usize = MIN_TEXT_BYTES;

    /// The required texts. `None` if they cannot leave out a block: a text is shorter than
    /// [`MIN_BYTES`](Self::MIN_BYTES), there are more than 32, or there is none.
    ///
    /// ```
    /// use larder_store::store::RequiredText;
    ///
    /// assert!(RequiredText::any_of(["timeout", "disk full"]).is_some());
    /// assert!(RequiredText::any_of(["timeout", "disk"]).is_none());
    /// ```
    pub fn any_of<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        let folded = texts.into_iter().take(MAX_TEXTS + 1).map(|text| {
            let text = text.as_ref();
            let compared = &text[..text.len().min(MAX_TEXT_BYTES)];
            compared.iter().copied().map(fold).collect::<Box<[u8]>>()
        });
        let texts: Arc<[_]> = folded.collect();

        let has_only_long = texts.iter().all(|text| text.len() >= MIN_TEXT_BYTES);
        ((1..=MAX_TEXTS).contains(&texts.len()) && has_only_long).then_some(Self(texts))
    }

    fn may_be_in(&self, filter: &BlockFilter) -> bool {
        self.0.iter().any(|text| filter.may_contain(text))
    }

    fn may_cross(&self, filter: &BlockFilter, next: &BlockFilter) -> bool {
        self.0.iter().any(|text| filter.may_cross(next, text))
    }
}

impl StoredResource {
    /// The blocks that contain all lines with the required text and `context` lines before and
    /// after each of them, and perhaps further lines, in ascending order. Leaves out blocks
    /// that were searched before and certainly contain none of these lines.
    ///
    /// # Errors
    /// [`Busy`]: too much work of this caller waits.
    pub async fn blocks_to_search(
        &self,
        caller: &Owner,
        required: &RequiredText,
        context: usize,
    ) -> Result<Vec<Range<usize>>, Busy> {
        let all = 0..self.entry.blocks.len();
        let filters = block_cache::filters(&self.entry);
        if filters.is_empty() {
            return Ok(iter::once(all).collect());
        }

        let entry = Arc::clone(&self.entry);
        let required = required.clone();
        let choosing = Compute::queue(caller.as_str(), move |_| {
            choose(&entry.blocks, entry.lines, &filters, &required, context as u64)
        });
        choosing.done().await
    }
}

/// The blocks to search, as [`StoredResource::blocks_to_search`] returns them.
fn choose(
    blocks: &[Block],
    lines: u64,
    filters: &[(u64, Arc<BlockFilter>)],
    required: &RequiredText,
    context: u64,
) -> Vec<Range<usize>> {
    // A text that is longer than a block could cross three blocks.
    let longest = MAX_TEXT_BYTES as u64;
    let [others @ .., _] = blocks else { return Vec::new() };
    if others.iter().any(|block| block.len < longest) {
        return iter::once(0..blocks.len()).collect();
    }

    let filter = |block: &Block| {
        let at = filters.binary_search_by_key(&block.offset, |(offset, _)| *offset).ok()?;
        let filter = &*filters[at].1;
        // Equal content may have been cut into other blocks.
        (filter.block_bytes() as u64 == block.len).then_some(filter)
    };

    let may_have = |index: usize| {
        let Some(this) = filter(&blocks[index]) else { return true };
        let next = blocks.get(index + 1).and_then(filter);
        required.may_be_in(this) || next.is_some_and(|next| required.may_cross(this, next))
    };

    let may_have: Vec<bool> = (0..blocks.len()).map(may_have).collect();
    ranges(&with_whole_lines(blocks, lines, &may_have, context))
}

/// Marks the neighbours of marked blocks that have parts of their lines, and of `context` lines
/// around.
fn with_whole_lines(blocks: &[Block], lines: u64, may_have: &[bool], context: u64) -> Vec<bool> {
    // The lines of which a block has a part. A block's last line is the first line of the next.
    let first_line = |index: usize| blocks[index].first_line;
    let last_line = |index: usize| blocks.get(index + 1).map_or(lines, |next| next.first_line);

    // A line that begins before or ends after a block also needs the neighbouring blocks.
    let mut is_read = may_have.to_vec();

    let mut until = None;
    for index in 0..blocks.len() {
        is_read[index] |= until.is_some_and(|line| first_line(index) <= line);
        if may_have[index] {
            until = Some(last_line(index) + context);
        }
    }

    let mut from = None;
    for index in (0..blocks.len()).rev() {
        is_read[index] |= from.is_some_and(|line| last_line(index) >= line);
        if may_have[index] {
            from = Some(first_line(index).saturating_sub(context));
        }
    }

    is_read
}

/// The runs of marked blocks.
fn ranges(is_read: &[bool]) -> Vec<Range<usize>> {
    let mut next = 0;
    let ranges = iter::from_fn(|| {
        let start = next + is_read[next..].iter().position(|is_read| *is_read)?;
        let len = is_read[start..].iter().take_while(|is_read| **is_read).count();
        next = start + len;
        Some(start..next)
    });

    ranges.collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    /// Cuts a text into blocks, and makes a filter for some of them.
    fn blocks(text: &str, cuts: &[usize], with_filter: &[bool]) -> Blocks {
        let mut blocks = Vec::new();
        let mut filters = Vec::new();

        let ends = cuts.iter().copied().chain([text.len()]);
        let mut start = 0;
        for (index, end) in ends.enumerate() {
            let first_line = text[..start].matches('\n').count() as u64;
            let offset = start as u64;
            let len = (end - start) as u64;
            blocks.push(Block { offset, len, first_line, stored: offset, stored_len: len });

            if with_filter[index % with_filter.len()]
                && let Some(filter) = BlockFilter::new(&text.as_bytes()[start..end])
            {
                filters.push((offset, Arc::new(filter)));
            }

            start = end;
        }

        (blocks, filters)
    }

    type Blocks = (Vec<Block>, Vec<(u64, Arc<BlockFilter>)>);

    fn chosen(text: &str, (blocks, filters): &Blocks, required: &str, context: u64) -> Vec<bool> {
        let required = RequiredText::any_of([required]).expect("it is long enough");
        let lines = text.split_inclusive('\n').count() as u64;
        let chosen = choose(blocks, lines, filters, &required, context);

        (0..blocks.len()).map(|index| chosen.iter().any(|range| range.contains(&index))).collect()
    }

    /// Short lines, and lines that are longer than a block.
    fn line() -> impl Strategy<Value = String> {
        let text = |len: Range<usize>| {
            let letters = ('a'..='z').cycle();
            (0_usize..26, 1_usize..9, len).prop_map(move |(start, step, len)| {
                letters.clone().skip(start).step_by(step).take(len).collect::<String>()
            })
        };
        prop_oneof![4 => text(0..40), 2 => text(0..900), 1 => text(2_000..9_000)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_blocks_of_matching_lines_and_their_context_are_chosen(
            lines in vec(line(), 1..60),
            needles in vec((any::<Index>(), any::<Index>()), 0..3),
            steps in vec(super::super::block_filter::MIN_BLOCK_BYTES..9_000, 1..20),
            with_filter in vec(any::<bool>(), 1..9),
            context in 0_usize..4,
        ) {
            let mut lines = lines;
            for (line, at) in needles {
                let line = line.get(&lines).clone();
                let index = lines.iter().position(|known| *known == line).expect("it is there");
                lines[index].insert_str(at.index(line.len() + 1), "Needle9");
            }

            let text = lines.join("\n");

            let mut cuts = Vec::new();
            for step in steps {
                let cut = cuts.last().copied().unwrap_or(0) + step;
                if cut < text.len() {
                    cuts.push(cut);
                }
            }

            let cut = blocks(&text, &cuts, &with_filter);
            let chosen = chosen(&text, &cut, "NEEDLE9", context as u64);

            let mut start = 0;
            let mut spans = Vec::new();
            for line in &lines {
                spans.push(start..start + line.len() + 1);
                start += line.len() + 1;
            }

            for (number, _) in lines.iter().enumerate().filter(|(_, line)| line.contains("Needle9")) {
                let shown = number.saturating_sub(context)..(number + context + 1).min(lines.len());
                for span in &spans[shown] {
                    for (block, chosen) in cut.0.iter().zip(&chosen) {
                        let start = span.start as u64;
                        let end = span.end as u64;
                        let has_part = block.offset < end && start < block.end();
                        prop_assert!(*chosen || !has_part, "{span:?} {block:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_without_the_text_are_left_out() {
        let lines: Vec<_> = (0..2_000).map(|n| format!("line {n} has nothing of note\n")).collect();
        let mut text = lines.concat();
        let cuts: Vec<_> = (1..10).map(|n| n * 6_000).collect();
        let all = blocks(&text, &cuts, &[true]);
        assert_eq!(chosen(&text, &all, "a herd of zebras", 0), [false; 10]);

        text.replace_range(30_003..30_019, "A herd of Zebras");
        let found = blocks(&text, &cuts, &[true]);
        let with = |indexes: &[usize]| (0..10).map(|n| indexes.contains(&n)).collect::<Vec<_>>();
        assert_eq!(chosen(&text, &found, "a herd of zebras", 0), with(&[4, 5, 6]));
        assert_eq!(chosen(&text, &found, "a herd of zebras", 250), with(&[3, 4, 5, 6, 7]));

        text.replace_range(30_003..30_019, "xxxxxxxxxxxxxxxx");
        text.replace_range(29_995..30_011, "A herd of Zebras");
        let crossing = blocks(&text, &cuts, &[true]);
        assert_eq!(chosen(&text, &crossing, "a herd of zebras", 0), with(&[3, 4, 5]));

        let partly = blocks(&text, &cuts, &[false, true, true]);
        assert_eq!(
            chosen(&text, &partly, "a herd of zebras", 0),
            [true; 10],
            "neighbours are read, too"
        );

        assert_eq!(chosen(&text, &(all.0, Vec::new()), "a herd of zebras", 0), [true; 10]);
    }

    #[test]
    fn a_block_shorter_than_a_text_selects_all_blocks() {
        let text = "a line\n".repeat(2_000);
        let cut = blocks(&text, &[6_000, 6_050], &[true]);
        assert_eq!(chosen(&text, &cut, "a herd of zebras", 0), [true; 3]);

        let ends = blocks(&text, &[6_000, 13_990], &[true]);
        assert_eq!(chosen(&text, &ends, "a herd of zebras", 0), [false, true, true]);
    }
}
