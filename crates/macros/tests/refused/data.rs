#[larder_macros::data(rename = "x")]
struct Options {
    value: u8,
}

#[larder_macros::test]
struct NoTest;

fn main() {}
