//! The options of an attribute: `title = "…", annotations(read_only)`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{
    Error, Expr, LitBool, LitFloat, LitStr, Result, Token, meta::ParseNestedMeta, parenthesized,
    parse::Parser,
};

/// The options of a tool, a resource or a prompt.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) allow_unknown: bool,
    /// Calls of setters that all builders have, or that the kind of item has.
    pub(crate) setters: Vec<TokenStream>,
}

/// The options of every kind.
const COMMON: &[&str] = &["name", "title", "description", "scope"];

const HINTS: &[&str] = &["read_only", "destructive", "idempotent", "open_world"];

impl Options {
    /// Parses options. `own` are the options of this kind of item only.
    pub(crate) fn parse(tokens: TokenStream, own: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let read = |meta: ParseNestedMeta<'_>| options.read(&meta, own);
        syn::meta::parser(read).parse2(tokens)?;
        if let Some(name) = &options.name {
            check_name(name)?;
        }
        Ok(options)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>, own: &[&str]) -> Result<()> {
        let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
        if !COMMON.contains(&&*name) && !own.contains(&&*name) {
            let all = [COMMON, own].concat().join(", ");
            return Err(meta.error(format!("unknown option: there are {all}")));
        }

        match &*name {
            "name" => self.name = Some(meta.value()?.parse()?),
            "description" => self.description = Some(meta.value()?.parse()?),
            "allow_unknown" => self.allow_unknown = true,
            "annotations" => self.annotations(meta)?,
            "spill" => {
                let spill: Ident = meta.value()?.parse()?;
                self.setters.push(quote!(.spill(::larder::Spill::#spill)));
            }
            "priority" => {
                let priority: LitFloat = meta.value()?.parse()?;
                if !priority.base10_parse::<f32>().is_ok_and(|p| (0.0..=1.0).contains(&p)) {
                    return Err(Error::new_spanned(priority, "a priority is between 0 and 1"));
                }
                self.setters.push(quote!(.priority(#priority)));
            }
            "cache" => self.cache(meta)?,
            // The setter has the option's name, and takes text.
            _ => {
                let setter = meta.path.get_ident();
                let value = meta.value()?.parse::<LitStr>()?;
                self.setters.push(quote!(.#setter(#value)));
            }
        }
        Ok(())
    }

    /// `cache(minutes(5), public)`
    fn cache(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let arguments;
        parenthesized!(arguments in meta.input);
        let ttl: Expr = arguments.parse()?;
        arguments.parse::<Token![,]>()?;
        let scope: Ident = arguments.parse()?;

        let variant = match &*scope.to_string() {
            "public" => quote!(Public),
            "private" => quote!(Private),
            _ => return Err(Error::new_spanned(scope, "unknown scope: there are public, private")),
        };

        self.setters.push(quote!(.cache(#ttl, ::larder::model::CacheScope::#variant)));
        Ok(())
    }

    fn annotations(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let mut hints = TokenStream::new();
        meta.parse_nested_meta(|hint| {
            let Some(name) = hint.path.get_ident().filter(|name| HINTS.iter().any(|h| name == h))
            else {
                return Err(hint.error(format!("unknown hint: there are {}", HINTS.join(", "))));
            };
            let value = if hint.input.peek(Token![=]) {
                hint.value()?.parse::<LitBool>()?.value
            } else {
                true
            };
            hints.extend(quote!(.#name(#value)));
            Ok(())
        })?;

        self.setters.push(quote!(.annotations(::larder::model::ToolAnnotations::new() #hints)));
        Ok(())
    }
}

fn check_name(name: &LitStr) -> Result<()> {
    let value = name.value();
    let is_name = (1..=128).contains(&value.len())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));

    if is_name {
        return Ok(());
    }
    Err(Error::new_spanned(name, "a name has 1 to 128 of the characters A-Z a-z 0-9 _ - ."))
}
