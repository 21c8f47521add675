/// Adds.
#[larder_macros::tool(tilte = "Add")]
fn add(a: f64) -> f64 {
    a
}

/// Adds.
#[larder_macros::tool(annotations(readonly))]
fn annotated(a: f64) -> f64 {
    a
}

/// Adds.
#[larder_macros::tool(name = "add two")]
fn named(a: f64) -> f64 {
    a
}

fn main() {}
