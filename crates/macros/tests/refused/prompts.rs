#[larder_macros::prompt(mime_type = "text/plain")]
fn unknown_option(text: String) -> String {
    text
}

#[larder_macros::prompt(name = "")]
fn no_name(text: String) -> String {
    text
}

#[larder_macros::prompt]
fn attribute_of_the_context(#[arg(default)] ctx: &Context) {}

fn main() {}
