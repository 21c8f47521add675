//! The types of what a query returns.

use std::cell::{Cell, RefCell};

use larder_records::notes::Note;
use sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderBy,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias,
    TableFactor, TableWithJoins,
};

use super::{
    rules::{self, Operand},
    scope::{CheckEnd, Checked, FromItem, Relation, Scope},
    texts,
    types::{Affinity, TableFacts, Typed},
};

/// The columns of the functions of JSON that are tables.
const JSON_COLUMNS: [&str; 10] =
    ["key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"];
/// The maximum depth of queries and expressions that are checked.
const MAX_DEPTH: usize = 600;
/// The maximum number of expressions that are checked: a part of a statement may be checked more
/// than once.
const MAX_EXPRESSIONS: usize = 100_000;

/// Checks queries over tables.
pub(super) struct Checker<'a> {
    tables: &'a [TableFacts],
    /// How many more expressions are checked.
    left: Cell<usize>,
    notes: RefCell<Vec<Note>>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(tables: &'a [TableFacts]) -> Self {
        Self { tables, left: Cell::new(MAX_EXPRESSIONS), notes: RefCell::default() }
    }

    /// Notes for the answer about the statement.
    pub(super) fn notes(self) -> Vec<Note> {
        self.notes.into_inner()
    }

    /// The type of an expression by which rows are sorted. Texts that are numbers are noted.
    pub(super) fn sorted(&self, expr: &Expr, scope: &Scope<'_>) -> Checked<()> {
        let typed = self.expr(expr, scope)?;
        self.tell(texts::sorted(Operand::new(expr, &typed)));
        Ok(())
    }

    /// Checks a comparison. `is_order`: it asks which is larger.
    pub(super) fn compare(
        &self,
        left: Operand<'_>,
        right: Operand<'_>,
        is_order: bool,
    ) -> Checked<()> {
        rules::compare(left, right, is_order).map_err(CheckEnd::Problem)?;
        self.tell(texts::compare(left, right, is_order).map_err(CheckEnd::Problem)?);
        Ok(())
    }

    fn tell(&self, note: Option<Note>) {
        let mut notes = self.notes.borrow_mut();
        if let Some(note) = note.filter(|note| !notes.contains(note)) {
            notes.push(note);
        }
    }

    /// Counts an expression.
    pub(super) fn step(&self, depth: usize) -> Checked<()> {
        let left = self.left.get().checked_sub(1).filter(|_| depth <= MAX_DEPTH);
        self.left.set(left.ok_or(CheckEnd::TooDeep)?);
        Ok(())
    }

    /// The columns of a query.
    pub(super) fn query(&self, query: &Query, outer: &Scope<'_>) -> Checked<Relation> {
        self.step(outer.depth)?;
        let mut scope = Scope::within(outer);
        if let Some(with) = &query.with {
            for table in &with.cte_tables {
                let relation = self.common_table(table, &mut scope)?;
                scope.tables.push((lower(&table.alias.name), relation));
            }
        }
        self.set(&query.body, query.order_by.as_ref(), &scope)
    }

    fn common_table(&self, table: &Cte, scope: &mut Scope<'_>) -> Checked<Relation> {
        let name = lower(&table.alias.name);

        // A recursive one reads itself: its columns are those of its first SELECT.
        if let SetExpr::SetOperation { left, .. } = &*table.query.body {
            let mut first = Scope::within(scope);
            first.tables.push((name.clone(), Relation::open()));
            let relation = self.set(left, None, &first)?;
            scope.tables.push((name, renamed(relation, &table.alias)));
        }
        Ok(renamed(self.query(&table.query, scope)?, &table.alias))
    }

    fn set(&self, set: &SetExpr, order: Option<&OrderBy>, scope: &Scope<'_>) -> Checked<Relation> {
        self.step(scope.depth)?;
        match set {
            SetExpr::Select(select) => self.select(select, order, scope),
            SetExpr::Query(query) => self.query(query, scope),
            SetExpr::SetOperation { left, right, .. } => {
                let inner = Scope::within(scope);
                let left = self.set(left, None, &inner)?;
                let right = self.set(right, None, &inner)?;
                Ok(united(left, right))
            }
            SetExpr::Values(values) => {
                let mut all: Option<Relation> = None;
                for row in &values.rows {
                    let mut columns = Vec::new();
                    for (index, expr) in row.content.iter().enumerate() {
                        let typed = self.expr(expr, scope)?.with_affinity(Affinity::Unknown);
                        columns.push((format!("column{}", index + 1), typed));
                    }
                    let row = Relation { columns, is_open: false };
                    all = Some(match all {
                        None => row,
                        Some(all) => united(all, row),
                    });
                }
                Ok(all.unwrap_or_default())
            }
            _ => Ok(Relation::open()),
        }
    }

    fn select(
        &self,
        select: &Select,
        order: Option<&OrderBy>,
        outer: &Scope<'_>,
    ) -> Checked<Relation> {
        let mut scope = Scope::within(outer);
        for tables in &select.from {
            self.tables(tables, &mut scope)?;
        }

        let relation = self.projection(&select.projection, &mut scope)?;
        for condition in [&select.selection, &select.having].into_iter().flatten() {
            self.condition(condition, &scope)?;
        }

        if let GroupByExpr::Expressions(expressions, _) = &select.group_by {
            for expr in expressions {
                self.expr(expr, &scope)?;
            }
        }
        if let Some(OrderBy { kind: OrderByKind::Expressions(all), .. }) = order {
            for order in all {
                self.sorted(&order.expr, &scope)?;
            }
        }
        Ok(relation)
    }

    fn projection(&self, items: &[SelectItem], scope: &mut Scope<'_>) -> Checked<Relation> {
        let mut relation = Relation::default();
        let mut aliases = Vec::new();

        for item in items {
            let (expr, name) = match item {
                SelectItem::ExprWithAlias { expr, alias } => (expr, lower(alias)),
                SelectItem::UnnamedExpr(expr) => (expr, name_of(expr)),
                SelectItem::Wildcard(_) => {
                    expand(&mut relation, scope.sources.iter());
                    continue;
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let name = last(name);
                    expand(
                        &mut relation,
                        scope.sources.iter().filter(|source| source.name == name),
                    );
                    continue;
                }
                _ => {
                    relation.is_open = true;
                    continue;
                }
            };

            let typed = self.expr(expr, scope)?;
            let typed = Typed { literal: None, ..typed };
            if matches!(item, SelectItem::ExprWithAlias { .. }) {
                aliases.push((name.clone(), typed.clone()));
            }
            relation.columns.push((name, typed));
        }

        scope.aliases = aliases;
        Ok(relation)
    }

    fn tables(&self, tables: &TableWithJoins, scope: &mut Scope<'_>) -> Checked<()> {
        self.table(&tables.relation, scope)?;
        for join in &tables.joins {
            let before = scope.sources.len();
            self.table(&join.relation, scope)?;
            self.join(join, before, scope)?;
        }
        Ok(())
    }

    fn table(&self, factor: &TableFactor, scope: &mut Scope<'_>) -> Checked<()> {
        let (name, relation) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let table = last(name);
                let relation = self.named(&table, scope);
                (alias.as_ref().map_or(table, |alias| lower(&alias.name)), relation)
            }
            TableFactor::Table { name, alias, args: Some(_), .. } => {
                let table = last(name);
                let relation = function(&table);
                (alias.as_ref().map_or(table, |alias| lower(&alias.name)), relation)
            }
            TableFactor::Derived { subquery, alias, .. } => {
                // A subquery in FROM does not see the tables beside it.
                let outside =
                    Scope { tables: Vec::new(), ..Scope::within(scope.outer.unwrap_or(&*scope)) };
                let relation = self.query(subquery, &outside)?;
                match alias {
                    Some(alias) => (lower(&alias.name), renamed(relation, alias)),
                    None => (String::new(), relation),
                }
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                if let Some(alias) = alias {
                    scope.sources.push(source(lower(&alias.name), Relation::open()));
                    return Ok(());
                }
                return self.tables(table_with_joins, scope);
            }
            _ => (String::new(), Relation::open()),
        };

        scope.sources.push(source(name, relation));
        Ok(())
    }

    /// The common table expression or the table of a name.
    pub(super) fn named(&self, name: &str, scope: &Scope<'_>) -> Relation {
        if let Some(relation) = scope.table(name) {
            return relation.clone();
        }

        let table = self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
        table.map_or_else(Relation::open, |table| Relation {
            columns: table
                .columns
                .iter()
                .map(|facts| (facts.name.to_ascii_lowercase(), Typed::column(facts)))
                .collect(),
            is_open: false,
        })
    }

    fn join(&self, join: &Join, before: usize, scope: &mut Scope<'_>) -> Checked<()> {
        let (JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint)) = &join.join_operator
        else {
            return Ok(());
        };

        let names: Vec<String> = match constraint {
            JoinConstraint::On(condition) => return self.condition(condition, scope),
            JoinConstraint::Using(names) => names.iter().map(last).collect(),
            JoinConstraint::Natural => {
                let (left, right) = scope.sources.split_at(before);
                let is_common = |name: &String| {
                    left.iter().any(|source| source.relation.column(name).is_some())
                };
                let names = right.iter().flat_map(|source| source.relation.columns.iter());
                names.map(|(name, _)| name.clone()).filter(is_common).collect()
            }
            _ => return Ok(()),
        };

        let (left, right) = scope.sources.split_at_mut(before);
        for name in names {
            let of_left = left.iter().find_map(|s| Some((s, s.relation.column(&name)?)));
            let of_right = right.iter().find_map(|s| Some((s, s.relation.column(&name)?)));
            if let (Some((one, typed)), Some((two, other))) = (of_left, of_right) {
                let texts = [format!("{}.{name}", one.name), format!("{}.{name}", two.name)];
                let one = Operand { text: &texts[0], typed };
                let two = Operand { text: &texts[1], typed: other };
                self.compare(one, two, false)?;
            }
            for source in right.iter_mut() {
                source.joined.push(name.clone());
            }
        }
        Ok(())
    }

    /// Checks a condition: of WHERE, HAVING, ON or FILTER.
    pub(super) fn condition(&self, expr: &Expr, scope: &Scope<'_>) -> Checked<()> {
        let typed = self.expr(expr, scope)?;
        rules::condition(Operand::new(expr, &typed)).map_err(CheckEnd::Problem)
    }
}

fn source(name: String, relation: Relation) -> FromItem {
    FromItem { name, relation, joined: Vec::new() }
}

fn function(name: &str) -> Relation {
    if !matches!(name, "json_each" | "json_tree" | "jsonb_each" | "jsonb_tree") {
        return Relation::open();
    }
    let columns = JSON_COLUMNS.iter().map(|name| ((*name).to_owned(), Typed::unknown())).collect();
    Relation { columns, is_open: false }
}

/// Adds the columns that `*` stands for.
fn expand<'s>(relation: &mut Relation, sources: impl Iterator<Item = &'s FromItem>) {
    for source in sources {
        relation.is_open |= source.relation.is_open;
        let columns = source.relation.columns.iter();
        let columns = columns.filter(|(name, _)| !source.joined.contains(name));
        relation.columns.extend(columns.cloned());
    }
}

/// A relation under the names of columns of an alias: `t(a, b)`.
fn renamed(mut relation: Relation, alias: &TableAlias) -> Relation {
    if relation.is_open && !alias.columns.is_empty() {
        return Relation::open();
    }
    for (column, (name, _)) in alias.columns.iter().zip(&mut relation.columns) {
        *name = lower(&column.name);
    }
    relation
}

/// The columns of a compound query, which have the names of the first.
fn united(left: Relation, right: Relation) -> Relation {
    let is_open = left.is_open || right.is_open;
    if is_open || left.columns.len() != right.columns.len() {
        return Relation::open();
    }

    let columns = left.columns.into_iter().zip(right.columns);
    let columns = columns.map(|((name, one), (_, other))| (name, one.or(other))).collect();
    Relation { columns, is_open }
}

fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => lower(name),
        Expr::CompoundIdentifier(names) => names.last().map(lower).unwrap_or_default(),
        Expr::Nested(inner) => name_of(inner),
        other => other.to_string().to_ascii_lowercase(),
    }
}

pub(super) fn lower(name: &Ident) -> String {
    name.value.to_ascii_lowercase()
}

/// The last part of a name, in lower case.
pub(super) fn last(name: &ObjectName) -> String {
    let part = name.0.last().and_then(|part| part.as_ident());
    part.map(lower).unwrap_or_default()
}
