//! The types of expressions.

use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    InTarget, UnaryOperator, Value, WindowType,
};

use super::{
    calls,
    queries::{Checker, last, lower},
    rules::{self, Operand},
    scope::{CheckEnd, Checked, Scope},
    texts,
    types::{Affinity, Literal, Typed, ValueSort},
};

impl Checker<'_> {
    /// The type of an expression, whose parts are checked.
    pub(super) fn expr(&self, expr: &Expr, outer: &Scope<'_>) -> Checked<Typed> {
        self.step(outer.depth)?;
        match expr {
            Expr::Identifier(name) => Ok(outer.column(None, &lower(name))),
            Expr::CompoundIdentifier(names) => match &names[..] {
                [.., table, name] => Ok(outer.column(Some(&lower(table)), &lower(name))),
                _ => Ok(Typed::unknown()),
            },
            Expr::Value(value) => Ok(of_value(&value.value)),
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.expr(inner, outer),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, outer),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr, outer),
            Expr::Between { expr, low, high, .. } => {
                let typed = self.expr(expr, outer)?;
                for bound in [low, high] {
                    let other = self.expr(bound, outer)?;
                    self.compare(Operand::new(expr, &typed), Operand::new(bound, &other), true)?;
                }
                Ok(Typed::of(ValueSort::Number))
            }
            Expr::In { expr, target, .. } => self.member(expr, target, outer),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), outer)
            }
            Expr::Cast { expr, data_type, .. } => {
                self.expr(expr, outer)?;
                Ok(calls::cast(&data_type.to_string()))
            }
            Expr::Function(function) => self.function(function, outer),
            Expr::Subquery(query) => {
                let relation = self.query(query, outer)?;
                let first = relation.columns.into_iter().next();
                Ok(first.map_or(Typed::unknown(), |(_, typed)| typed))
            }
            Expr::Exists { subquery, .. } => {
                self.query(subquery, outer)?;
                Ok(Typed::of(ValueSort::Number))
            }
            _ => self.other(expr, outer),
        }
    }

    /// Expressions that only have parts to check.
    fn other(&self, expr: &Expr, scope: &Scope<'_>) -> Checked<Typed> {
        match expr {
            Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner) => {
                self.expr(inner, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.comparison(left, right, false, scope)
            }
            Expr::Like { expr, pattern, .. }
            | Expr::ILike { expr, pattern, .. }
            | Expr::SimilarTo { expr, pattern, .. }
            | Expr::RLike { expr, pattern, .. } => {
                self.expr(expr, scope)?;
                self.expr(pattern, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => {
                self.expr(expr, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            Expr::Substring { expr, .. } | Expr::Trim { expr, .. } => {
                self.expr(expr, scope)?;
                Ok(Typed::of(ValueSort::Text))
            }
            Expr::Tuple(parts) => {
                for part in parts {
                    self.expr(part, scope)?;
                }
                Ok(Typed::unknown())
            }
            _ => Ok(Typed::unknown()),
        }
    }

    fn binary(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        outer: &Scope<'_>,
    ) -> Checked<Typed> {
        use BinaryOperator as Op;
        let deeper = Scope::within(outer);
        let scope = &deeper;

        match op {
            Op::And | Op::Or => {
                self.condition(left, scope)?;
                self.condition(right, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            Op::Eq | Op::NotEq | Op::Is | Op::IsNot => self.comparison(left, right, false, scope),
            Op::Lt | Op::LtEq | Op::Gt | Op::GtEq => self.comparison(left, right, true, scope),
            Op::Plus
            | Op::Minus
            | Op::Multiply
            | Op::Divide
            | Op::Modulo
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::PGBitwiseShiftLeft
            | Op::PGBitwiseShiftRight => {
                self.operand(left, scope)?;
                self.operand(right, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            Op::StringConcat => {
                self.expr(left, scope)?;
                self.expr(right, scope)?;
                Ok(Typed::of(ValueSort::Text))
            }
            Op::Regexp | Op::Glob | Op::Match => {
                self.expr(left, scope)?;
                self.expr(right, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            _ => {
                self.expr(left, scope)?;
                self.expr(right, scope)?;
                Ok(Typed::unknown())
            }
        }
    }

    fn comparison(
        &self,
        left: &Expr,
        right: &Expr,
        is_order: bool,
        scope: &Scope<'_>,
    ) -> Checked<Typed> {
        if let (Expr::Tuple(lefts), Expr::Tuple(rights)) = (left, right) {
            for (left, right) in lefts.iter().zip(rights) {
                self.comparison(left, right, is_order, scope)?;
            }
            return Ok(Typed::of(ValueSort::Number));
        }

        let one = self.expr(left, scope)?;
        let other = self.expr(right, scope)?;
        self.compare(Operand::new(left, &one), Operand::new(right, &other), is_order)?;
        Ok(Typed::of(ValueSort::Number))
    }

    /// The type of an operand of arithmetic.
    fn operand(&self, expr: &Expr, scope: &Scope<'_>) -> Checked<Typed> {
        let typed = self.expr(expr, scope)?;
        rules::arithmetic(Operand::new(expr, &typed)).map_err(CheckEnd::Problem)?;
        Ok(typed)
    }

    fn unary(&self, op: UnaryOperator, expr: &Expr, outer: &Scope<'_>) -> Checked<Typed> {
        let scope = &Scope::within(outer);
        match op {
            UnaryOperator::Plus => Ok(self.expr(expr, scope)?.with_affinity(Affinity::None)),
            UnaryOperator::Not => {
                self.condition(expr, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            UnaryOperator::Minus => Ok(match self.operand(expr, scope)?.literal {
                Some(Literal::Number(number)) => {
                    Typed::literal(Literal::Number(format!("-{number}")))
                }
                _ => Typed::of(ValueSort::Number),
            }),
            UnaryOperator::BitwiseNot => {
                self.operand(expr, scope)?;
                Ok(Typed::of(ValueSort::Number))
            }
            _ => Ok(Typed::unknown()),
        }
    }

    fn member(&self, expr: &Expr, target: &InTarget, outer: &Scope<'_>) -> Checked<Typed> {
        let scope = &Scope::within(outer);
        match target {
            InTarget::List(items) => {
                let typed = self.expr(expr, scope)?;
                for item in items {
                    let other = self.expr(item, scope)?;
                    self.compare(Operand::new(expr, &typed), Operand::new(item, &other), false)?;
                }
            }
            InTarget::Subquery(query) => {
                let relation = self.query(query, scope)?;
                self.member_of(expr, &relation, "the column of the subquery", scope)?;
            }
            InTarget::Table { name, args: None } => {
                let relation = self.named(&last(name), scope);
                self.member_of(expr, &relation, &name.to_string(), scope)?;
            }
            _ => {}
        }
        Ok(Typed::of(ValueSort::Number))
    }

    fn member_of(
        &self,
        expr: &Expr,
        relation: &super::scope::Relation,
        name: &str,
        scope: &Scope<'_>,
    ) -> Checked<()> {
        let typed = self.expr(expr, scope)?;
        let [(column, other)] = &relation.columns[..] else { return Ok(()) };
        let name = if column.is_empty() { name } else { column.as_str() };
        let right = Operand { text: &name, typed: other };
        self.compare(Operand::new(expr, &typed), right, false)
    }

    fn case(
        &self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        outer: &Scope<'_>,
    ) -> Checked<Typed> {
        let scope = &Scope::within(outer);
        let operand = match operand {
            Some(operand) => Some((operand, self.expr(operand, scope)?)),
            None => None,
        };

        let mut results: Option<Typed> = None;
        for CaseWhen { condition, result } in conditions {
            match &operand {
                Some((operand, typed)) => {
                    let other = self.expr(condition, scope)?;
                    self.compare(
                        Operand::new(operand, typed),
                        Operand::new(condition, &other),
                        false,
                    )?;
                }
                None => self.condition(condition, scope)?,
            }
            let result = self.expr(result, scope)?;
            results = Some(match results {
                Some(results) => results.or(result),
                None => result,
            });
        }

        let results = results.unwrap_or(Typed::of(ValueSort::Null));
        let typed = match otherwise {
            Some(otherwise) => results.or(self.expr(otherwise, scope)?),
            None => results,
        };
        Ok(typed.with_affinity(Affinity::None))
    }

    fn function(&self, function: &Function, outer: &Scope<'_>) -> Checked<Typed> {
        let scope = &Scope::within(outer);
        let name = last(&function.name);
        let mut arguments = Vec::new();

        match &function.args {
            FunctionArguments::List(list) => {
                for argument in &list.args {
                    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                        continue;
                    };
                    let typed = self.expr(expr, scope)?;
                    if matches!(&*name, "min" | "max") {
                        texts::extreme(&name, Operand::new(expr, &typed))
                            .map_err(CheckEnd::Problem)?;
                    }
                    arguments.push(typed);
                }
            }
            FunctionArguments::Subquery(query) => drop(self.query(query, scope)?),
            FunctionArguments::None => {}
        }

        if let Some(filter) = &function.filter {
            self.condition(filter, scope)?;
        }
        if let Some(WindowType::WindowSpec(window)) = &function.over {
            for expr in &window.partition_by {
                self.expr(expr, scope)?;
            }
            for order in &window.order_by {
                self.sorted(&order.expr, scope)?;
            }
        }
        Ok(calls::result(&name, &arguments))
    }
}

fn of_value(value: &Value) -> Typed {
    match value {
        Value::Number(number, _) => Typed::literal(Literal::Number(number.clone())),
        Value::SingleQuotedString(text) => Typed::literal(Literal::Text(text.clone())),
        Value::Boolean(_) => Typed::of(ValueSort::Number),
        Value::Null => Typed::of(ValueSort::Null),
        _ => Typed::unknown(),
    }
}
