//! `#[resource("uri")]`

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Error, Expr, ItemFn, Lit, LitStr, Meta, Result, Token,
    parse::{Parse, ParseStream},
};

use crate::{function::Function, item, options::Options};

/// `"uri", option = …`
struct Header {
    uri: LitStr,
    options: TokenStream,
}

impl Parse for Header {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let problem = "a resource needs a URI, such as #[resource(\"docs://{page}\")]";
        let uri = input.parse().map_err(|error| Error::new(error.span(), problem))?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok(Self { uri, options: input.parse()? })
    }
}

pub(crate) fn expand(header: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let Header { uri, options } = syn::parse2(header)?;
    let options = Options::parse(options, &["mime_type", "priority", "cache"])?;
    let function = Function::parse(function)?;
    let variables = variables(&uri)?;
    check_variables(&uri, &variables, &function)?;

    let name = options.name.as_ref().map_or_else(|| function.listed_name(), LitStr::value);
    let own = function.listed_name();
    let pattern = item::arguments_pattern(&function);
    let call = item::call(&function);
    let output = &function.output;
    let setters = &options.setters;

    let description = options
        .description
        .as_ref()
        .map(LitStr::value)
        .or_else(|| text(&function.docs))
        .map(|text| quote!(.description(#text)));

    if variables.is_empty() {
        return Ok(item::item(&function, &quote!(Resource), "resource", |state| {
            quote! {
                ::larder::Resource::new(#uri, |__context: ::larder::Context<#state>| async move {
                    let __returned: #output = #call;
                    __returned
                })
                .name(#name)
                .origin(::core::concat!(::core::module_path!(), "::", #own))
                #description
                #(#setters)*
            }
        }));
    }

    let arguments = item::arguments_struct(&function, &options, &name);
    Ok(item::item(&function, &quote!(Template), "resource template", |state| {
        quote! {
            #arguments

            ::larder::Template::typed(
                #uri,
                #name,
                |__context: ::larder::Context<#state>, __arguments: Arguments| async move {
                    let #pattern = __arguments;
                    let __returned: #output = #call;
                    __returned
                },
            )
            .origin(::core::concat!(::core::module_path!(), "::", #own))
            #description
            #(#setters)*
        }
    }))
}

/// Refuses a variable without its parameter, and a parameter without its variable.
fn check_variables(uri: &LitStr, variables: &[String], function: &Function) -> Result<()> {
    for argument in function.arguments() {
        if !variables.contains(&argument.key) {
            let problem = format!("the URI has no {{{}}}", argument.key);
            return Err(Error::new_spanned(&argument.name, problem));
        }
    }

    for variable in variables {
        if !function.arguments().any(|argument| argument.key == *variable) {
            let problem = format!("the function has no parameter {variable}");
            return Err(Error::new_spanned(uri, problem));
        }
    }

    Ok(())
}

/// The names in `{name}`, `{+name}` and `{?first,second}`.
fn variables(uri: &LitStr) -> Result<Vec<String>> {
    let text = uri.value();
    let mut variables = Vec::new();
    let mut rest = text.as_str();

    while let Some((_, after)) = rest.split_once('{') {
        let Some((variable, after)) = after.split_once('}') else {
            return Err(Error::new_spanned(uri, "a { without its }"));
        };
        for name in variable.trim_start_matches(['+', '?', '&']).split(',') {
            if variables.iter().any(|variable| variable == name) {
                return Err(Error::new_spanned(uri, format!("{name} is there twice")));
            }
            variables.push(name.to_owned());
        }
        rest = after;
    }

    Ok(variables)
}

/// The text of a doc comment: lines of a paragraph are joined.
fn text(docs: &[Attribute]) -> Option<String> {
    let lines = docs.iter().filter_map(|doc| match &doc.meta {
        Meta::NameValue(doc) => match &doc.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });

    let text = lines.collect::<Vec<_>>().join("\n");
    let paragraphs: Vec<_> = text
        .split("\n \n")
        .flat_map(|part| part.split("\n\n"))
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}
