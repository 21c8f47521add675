//! [`Sqlite`]: SQLite's dialect with the precedence of its operators.

use std::any::TypeId;

use sqlparser::{
    ast::{DataType, Expr, Statement, UnaryOperator},
    dialect::{Dialect, Precedence, SQLiteDialect},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::Token,
};

/// The precedence of `||`, `->` and `->>`, which bind tighter than `*`.
const CONCATENATION: u8 = 45;
/// The precedence of a sign before an expression, which binds tighter than all operators between
/// two.
const SIGN: u8 = 48;

/// SQLite's dialect of the parser, which has other precedences for some operators than
/// <https://www.sqlite.org/lang_expr.html#operators_and_parse_affecting_attributes>.
#[derive(Debug)]
pub(super) struct Sqlite;

/// The parser's dialect, which answers all other questions.
const BASE: SQLiteDialect = SQLiteDialect {};

/// Methods without further arguments that the parser's dialect answers.
macro_rules! same {
    ($($method:ident)*) => {
        $(fn $method(&self) -> bool {
            BASE.$method()
        })*
    };
}

impl Dialect for Sqlite {
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::StringConcat | Token::Arrow | Token::LongArrow => Some(Ok(CONCATENATION)),
            _ => BASE.get_next_precedence(parser),
        }
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            Token::Tilde => UnaryOperator::BitwiseNot,
            _ => return BASE.parse_prefix(parser),
        };
        parser.advance_token();
        let expr = parser.parse_subexpr(SIGN);
        Some(expr.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        BASE.is_delimited_identifier_start(c)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_identifier_start(&self, c: char) -> bool {
        BASE.is_identifier_start(c)
    }

    fn is_identifier_part(&self, c: char) -> bool {
        BASE.is_identifier_part(c)
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        BASE.parse_statement(parser)
    }

    fn parse_data_type(&self, parser: &mut Parser<'_>) -> Option<Result<DataType, ParserError>> {
        BASE.parse_data_type(parser)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        BASE.parse_infix(parser, expr, precedence)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    fn between_low_bound_precedence(&self) -> u8 {
        BASE.between_low_bound_precedence()
    }

    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        BASE.is_column_alias(keyword, parser)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        BASE.is_table_alias(keyword, parser)
    }

    fn is_table_factor(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        BASE.is_table_factor(keyword, parser)
    }

    same! {
        supports_filter_during_aggregation
        supports_start_transaction_modifier
        supports_in_empty_list
        supports_limit_comma
        supports_asc_desc_in_column_definition
        supports_dollar_placeholder
        supports_notnull_operator
        supports_is_operator
        supports_comma_separated_trim
        supports_numeric_literal_underscores
        supports_double_eq_assignment
        supports_string_literal_column_names
        supports_cast_empty_data_type_to_unspecified
        supports_national_string_literal
        supports_parens_around_table_factor
        supports_unterminated_block_comments
        supports_over_keyword_as_column_alias
        supports_indexed_by
        supports_comma_join_constraint
        supports_aggregate_order_by_with_empty_args
        supports_bitwise_shift_operators
        supports_in_table_expression
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(sql: &str) -> String {
        fn written(expr: &Expr) -> String {
            match expr {
                Expr::BinaryOp { left, op, right } => {
                    format!("({} {op} {})", written(left), written(right))
                }
                Expr::UnaryOp { op, expr } => format!("({op}{})", written(expr)),
                other => other.to_string(),
            }
        }

        let parser = Parser::new(&Sqlite).try_with_sql(sql);
        let expr = parser.and_then(|mut parser| parser.parse_expr());
        expr.map_or_else(|error| error.to_string(), |expr| written(&expr))
    }

    #[test]
    fn operators_bind_as_in_sqlite() {
        for (sql, expected) in [
            ("a || b = c", "((a || b) = c)"),
            ("c = a || b", "(c = (a || b))"),
            ("x ->> '$.a' = 1", "((x ->> '$.a') = 1)"),
            ("1 + x -> 'a' ->> 'b' > 2", "((1 + ((x -> 'a') ->> 'b')) > 2)"),
            ("'a' || 1 + 2", "(('a' || 1) + 2)"),
            ("2 * a || b", "(2 * (a || b))"),
            ("a || b * 2", "((a || b) * 2)"),
            ("-a || b", "((-a) || b)"),
            ("a || -b", "(a || (-b))"),
            ("~a || b << 2", "(((~a) || b) << 2)"),
            ("- - a * b", "((-(-a)) * b)"),
            ("-a - -b", "((-a) - (-b))"),
            ("a < b = c", "((a < b) = c)"),
            ("NOT a || b = c", "(NOT ((a || b) = c))"),
            ("a AND b || c", "(a AND (b || c))"),
        ] {
            assert_eq!(parsed(sql).replace("NOT(", "NOT ("), expected, "{sql}");
        }
    }
}
