/// Takes a reference.
#[larder_macros::tool]
fn reference(text: &str) -> String {
    text.to_owned()
}

/// Takes apart.
#[larder_macros::tool]
fn apart((a, b): (f64, f64)) -> f64 {
    a + b
}

/// Has two contexts.
#[larder_macros::tool]
fn contexts(one: &Context, other: Context<Logs>) {}

/// Is generic.
#[larder_macros::tool]
fn generic<T>(value: T) {}

/// Has an unnamed result.
#[larder_macros::tool]
fn unnamed() -> impl Send {}

struct Server;

impl Server {
    /// Is a method.
    #[larder_macros::tool]
    fn method(&self) {}
}

fn main() {}
