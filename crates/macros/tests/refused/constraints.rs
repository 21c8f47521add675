/// Has a default that is too large.
#[larder_macros::tool]
fn default(#[arg(default = 200, range = 1..=100)] limit: usize) {}

/// Has an empty range.
#[larder_macros::tool]
fn empty(#[arg(range = 10..=1)] limit: usize) {}

/// Has an unknown option.
#[larder_macros::tool]
fn unknown(#[arg(minimum = 1)] limit: usize) {}

/// Has an option of something else.
#[larder_macros::tool]
fn foreign(#[serde(default)] limit: usize) {}

fn main() {}
