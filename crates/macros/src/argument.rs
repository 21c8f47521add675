//! An argument: a parameter of the function, with its options in `#[arg(...)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, Expr, ExprRange, Ident, Lit, LitInt, LitStr, RangeLimits, Result, Token,
    Type, UnOp, ext::IdentExt, meta::ParseNestedMeta,
};

/// A parameter that the caller gives.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    /// The name that callers use.
    pub(crate) key: String,
    pub(crate) ty: Type,
    docs: Vec<Attribute>,
    default: Option<Fallback>,
    range: Option<ExprRange>,
    /// Keywords of the schema and their values.
    keywords: Vec<(&'static str, TokenStream)>,
    rename: Option<LitStr>,
}

enum Fallback {
    OfType,
    Value(Box<Expr>),
}

const OPTIONS: &str =
    "default, range, min_length, max_length, min_items, max_items, pattern, rename";

impl Argument {
    /// An argument with the attributes of its parameter.
    pub(crate) fn new(name: Ident, ty: Type, attributes: Vec<Attribute>) -> Result<Self> {
        check_type(&ty)?;
        let mut argument = Self {
            key: name.unraw().to_string(),
            name,
            ty,
            docs: Vec::new(),
            default: None,
            range: None,
            keywords: Vec::new(),
            rename: None,
        };

        for attribute in attributes {
            if attribute.path().is_ident("doc") {
                argument.docs.push(attribute);
            } else if attribute.path().is_ident("arg") {
                attribute.parse_nested_meta(|meta| argument.read(&meta))?;
            } else {
                let problem = "a parameter has only doc comments and #[arg(...)]";
                return Err(Error::new_spanned(attribute, problem));
            }
        }

        argument.check_default()?;
        Ok(argument)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let option = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();

        match &*option {
            "default" if meta.input.peek(Token![=]) => {
                self.default = Some(Fallback::Value(Box::new(meta.value()?.parse()?)));
            }
            "default" => self.default = Some(Fallback::OfType),
            "range" => self.read_range(meta.value()?.parse()?)?,
            "min_length" => self.count("minLength", meta)?,
            "max_length" => self.count("maxLength", meta)?,
            "min_items" => self.count("minItems", meta)?,
            "max_items" => self.count("maxItems", meta)?,
            "pattern" => {
                let pattern: LitStr = meta.value()?.parse()?;
                self.keywords.push(("pattern", quote!(#pattern)));
            }
            "rename" => {
                let key: LitStr = meta.value()?.parse()?;
                self.key = key.value();
                self.rename = Some(key);
            }
            _ => return Err(meta.error(format!("unknown option: there are {OPTIONS}"))),
        }
        Ok(())
    }

    fn count(&mut self, keyword: &'static str, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let count: LitInt = meta.value()?.parse()?;
        count.base10_parse::<u32>()?;
        self.keywords.push((keyword, quote!(#count)));
        Ok(())
    }

    fn read_range(&mut self, range: Expr) -> Result<()> {
        let Expr::Range(range) = range else {
            return Err(Error::new_spanned(range, "a range is like 1..=100, 0.. or ..=1.0"));
        };

        if let (Some(start), Some(end)) =
            (number(range.start.as_deref()), number(range.end.as_deref()))
            && start > end
        {
            return Err(Error::new_spanned(range, "the range is empty"));
        }

        if let Some(start) = &range.start {
            self.keywords.push(("minimum", quote!(#start)));
        }
        if let Some(end) = &range.end {
            let keyword = match range.limits {
                RangeLimits::HalfOpen(_) => "exclusiveMaximum",
                RangeLimits::Closed(_) => "maximum",
            };
            self.keywords.push((keyword, quote!(#end)));
        }

        self.range = Some(range);
        Ok(())
    }

    /// Refuses a default that the range excludes, as far as both are literals.
    fn check_default(&self) -> Result<()> {
        let (Some(Fallback::Value(default)), Some(range)) = (&self.default, &self.range) else {
            return Ok(());
        };
        let Some(value) = number(Some(default)) else { return Ok(()) };

        let low = number(range.start.as_deref()).is_none_or(|start| value >= start);
        let high = number(range.end.as_deref()).is_none_or(|end| match range.limits {
            RangeLimits::HalfOpen(_) => value < end,
            RangeLimits::Closed(_) => value <= end,
        });

        if low && high {
            return Ok(());
        }
        Err(Error::new_spanned(default, "the default is outside of the range"))
    }

    /// The function that gives the default, if there is one.
    pub(crate) fn default_function(&self) -> Option<TokenStream> {
        let ty = &self.ty;
        let name = self.default_name();

        let value = match self.default.as_ref()? {
            Fallback::OfType => return None,
            Fallback::Value(value) => match &**value {
                Expr::Lit(literal) if matches!(literal.lit, Lit::Str(_)) => {
                    quote!(::core::convert::From::from(#value))
                }
                value => quote!(#value),
            },
        };

        Some(quote!(fn #name() -> #ty { #value }))
    }

    fn default_name(&self) -> Ident {
        format_ident!("default_{}", self.name.unraw())
    }

    /// The field of the argument struct.
    pub(crate) fn field(&self) -> TokenStream {
        let Self { name, ty, docs, .. } = self;
        let default = self.default.as_ref().map(|default| match default {
            Fallback::OfType => quote!(#[serde(default)]),
            Fallback::Value(_) => {
                let path = self.default_name().to_string();
                quote!(#[serde(default = #path)])
            }
        });
        let rename = self.rename.as_ref().map(|key| quote!(#[serde(rename = #key)]));
        let keywords = self
            .keywords
            .iter()
            .map(|(keyword, value)| quote!(#[schemars(extend(#keyword = #value))]));

        quote!(#(#docs)* #default #rename #(#keywords)* #name: #ty)
    }
}

fn check_type(ty: &Type) -> Result<()> {
    let problem = match ty {
        Type::Reference(_) => "an argument is a value of its own, such as String or Vec<T>",
        Type::ImplTrait(_) | Type::TraitObject(_) => "an argument has a type that is known",
        Type::Infer(_) => "an argument needs a type",
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, problem))
}

/// The value of a literal number, with or without a sign.
fn number(value: Option<&Expr>) -> Option<f64> {
    match value? {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            Lit::Float(float) => float.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            number(Some(&*unary.expr)).map(|n| -n)
        }
        _ => None,
    }
}
