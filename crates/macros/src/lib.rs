//! The attribute macros of Larder: tools, resources and prompts from functions.
//!
//! Use them through the crate `larder`, which documents them with their types.

mod argument;
mod data;
mod forms;
mod function;
mod item;
mod options;
mod prompt;
mod resource;
mod test;
mod tool;

use proc_macro::TokenStream;
use syn::{Error, ItemFn};

/// A tool from a function.
///
/// The function's name is the tool's name, its doc comment the description, and its
/// parameters are the input schema. The macro replaces the function by one without
/// parameters that returns a [`Tool`]: give that to `Server::tool` or `Builder::tool`, or
/// call it to use more of the builder. The function itself is then `NAME::call`.
///
/// ```ignore
/// use larder::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(/** The first. */ a: f64, /** The second. */ b: f64) -> f64 {
///     a + b
/// }
///
/// assert_eq!(add::call(1.0, 2.0), 3.0);
/// let registry = larder::Registry::builder("calculator").tool(add()).build()?;
/// let tool = &registry.tools(None)?.items[0];
/// assert_eq!(tool.input_schema["properties"]["b"]["description"], "The second.");
/// ```
///
/// # Parameters
/// A `Context`, `&Context` or `&Context<State>` anywhere among the parameters is the call's
/// context; leave it out if it is not needed. All others are arguments: their types
/// implement `Deserialize` and `JsonSchema`. An `Option` may be missing. `#[arg(...)]` says
/// more: `default`, `default = VALUE`, `range = 1..=100`, `min_length`, `max_length`,
/// `min_items`, `max_items`, `pattern = "…"`, `rename = "…"`. All of these are in the schema,
/// and arguments that do not match never reach the function.
///
/// # Result
/// Text, content, `Json`, `Stored` and all other types that implement `IntoToolResult` are sent
/// as they are. Any other type that implements `Serialize` and `JsonSchema` is structured content,
/// with an output schema. A `Result` of those can also fail with a `ToolError`.
///
/// # Forms
/// The struct in `ctx.elicit::<Struct>(…)` is a form of the tool: a server whose form clients
/// cannot show does not build. Where the function has items of its own (`use`, `struct`,
/// `fn`), or the struct is inferred, name the form with `Tool::form` or `Builder::form`.
///
/// # Options
/// `name = "…"`, `title = "…"`, `description = "…"`, `scope = "…"` (several times),
/// `annotations(read_only, destructive = false, idempotent, open_world = false)`,
/// `spill = Auto | Always | Never`, and `allow_unknown`, with which unknown arguments are
/// ignored instead of refused.
///
/// [`Tool`]: https://docs.rs/larder/latest/larder/struct.Tool.html
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand(options, function, tool::expand)
}

/// A resource, or a template of resources, from a function that reads it.
///
/// A variable of the URI template is the parameter of that name: text, a number or a
/// boolean. The function's name is the resource's name, and its doc comment the description.
/// As with [`macro@tool`], the function itself is `NAME::call`.
///
/// ```ignore
/// use larder::prelude::*;
///
/// /// The weather of a city.
/// #[resource("weather://{city}", mime_type = "text/plain")]
/// async fn weather(city: String) -> String {
///     format!("It rains in {city}.")
/// }
///
/// assert!(larder::Registry::builder("weather").template(weather()).build().is_ok());
/// ```
///
/// Options: `name`, `title`, `description`, `mime_type`, `scope`, `priority = 0.5`,
/// `cache(minutes(5), public)`: how long clients may cache what it returns, and whether callers
/// may share it (`public` or `private`).
#[proc_macro_attribute]
pub fn resource(options: TokenStream, function: TokenStream) -> TokenStream {
    expand(options, function, resource::expand)
}

/// A prompt from a function that returns its messages.
///
/// The function's name is the prompt's name, its doc comment the description, and its
/// parameters are the arguments: text, numbers or booleans. As with [`macro@tool`], the
/// function itself is `NAME::call`.
///
/// ```ignore
/// use larder::prelude::*;
///
/// /// Lists the main ideas of a text.
/// #[prompt]
/// fn main_ideas(#[arg(range = 1..=9)] count: u32, text: String) -> [Message; 2] {
///     [user(format!("List {count} main ideas of: {text}")), assistant("1.")]
/// }
///
/// assert!(larder::Registry::builder("ideas").prompt(main_ideas()).build().is_ok());
/// ```
///
/// Options: `name`, `title`, `description`, `scope`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, function: TokenStream) -> TokenStream {
    expand(options, function, prompt::expand)
}

/// Makes a struct or enum an argument: derives `Deserialize` and `JsonSchema`, for crates
/// that depend on `larder` alone.
///
/// ```ignore
/// use larder::prelude::*;
///
/// #[larder::args]
/// struct Point {
///     /// From the left.
///     x: f64,
///     y: f64,
/// }
///
/// /// The distance from the origin.
/// #[tool]
/// fn distance(point: Point) -> f64 {
///     point.x.hypot(point.y)
/// }
/// ```
#[proc_macro_attribute]
pub fn args(options: TokenStream, item: TokenStream) -> TokenStream {
    data::expand(&options.into(), &item.into(), data::Direction::In).into()
}

/// Makes a struct or enum a result: derives `Serialize` and `JsonSchema`, for crates that
/// depend on `larder` alone.
#[proc_macro_attribute]
pub fn output(options: TokenStream, item: TokenStream) -> TokenStream {
    data::expand(&options.into(), &item.into(), data::Direction::Out).into()
}

/// Makes a struct or enum an argument and a result: [`macro@args`] and [`macro@output`] in
/// one.
#[proc_macro_attribute]
pub fn data(options: TokenStream, item: TokenStream) -> TokenStream {
    data::expand(&options.into(), &item.into(), data::Direction::Both).into()
}

type Expand = fn(proc_macro2::TokenStream, ItemFn) -> syn::Result<proc_macro2::TokenStream>;

fn expand(options: TokenStream, function: TokenStream, expand: Expand) -> TokenStream {
    let function = syn::parse(function).map_err(|error| {
        Error::new(error.span(), format!("this attribute belongs on a function: {error}"))
    });

    let expanded = function.and_then(|function| expand(options.into(), function));
    expanded.unwrap_or_else(Error::into_compile_error).into()
}

/// An `async` test, in a runtime of its own.
///
/// ```ignore
/// #[larder::test]
/// async fn adds() -> Result<(), larder::TestError> {
///     let client = larder::test(app).await;
///     assert_eq!(client.call("add", larder::json!({ "a": 1, "b": 2 })).await?.text(), "3");
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    expand(options, function, test::expand)
}
