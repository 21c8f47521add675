//! `sum`, `avg` and `total`, which compute as SQLite's do, and refuse texts that are no numbers.

use rusqlite::{
    Connection, Error, Result,
    functions::{Aggregate, Context, WindowAggregate},
    types::Value,
};

use super::{FLAGS, Number, Refusals};

pub(super) fn add(connection: &Connection, refusals: &Refusals) -> Result<()> {
    for (name, result) in
        [("sum", SumKind::Sum), ("avg", SumKind::Average), ("total", SumKind::Total)]
    {
        let sum = Sum { name, result, refusals: refusals.clone() };
        connection.create_window_function(name, 1, FLAGS, sum)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SumKind {
    Sum,
    Average,
    Total,
}

struct Sum {
    name: &'static str,
    result: SumKind,
    refusals: Refusals,
}

/// The numbers so far, as SQLite's `SumCtx` has them: an exact integer, until a real or an
/// overflow makes it a sum by Kahan, Babuška and Neumaier.
#[derive(Debug, Default)]
struct SumState {
    count: u64,
    integer: i64,
    real: f64,
    error: f64,
    is_real: bool,
    overflow: bool,
}

/// Integers from this size on are added in two parts, because a real has 53 bits.
const LARGE: i64 = 4_503_599_627_370_496;
const PART: i64 = 16_384;

impl SumState {
    fn add_real(&mut self, number: f64) {
        let sum = self.real;
        let next = sum + number;
        self.error +=
            if sum.abs() > number.abs() { (sum - next) + number } else { (number - next) + sum };
        self.real = next;
    }

    #[allow(clippy::cast_precision_loss, reason = "large integers are added in two parts")]
    fn add_integer(&mut self, number: i64) {
        if (-LARGE + 1..LARGE).contains(&number) {
            self.add_real(number as f64);
        } else {
            let small = number % PART;
            self.add_real((number - small) as f64);
            self.add_real(small as f64);
        }
    }

    /// Goes on with reals.
    #[allow(clippy::cast_precision_loss, reason = "large integers are kept in two parts")]
    fn become_real(&mut self) {
        self.is_real = true;
        let small =
            if (-LARGE + 1..LARGE).contains(&self.integer) { 0 } else { self.integer % PART };
        self.real = (self.integer - small) as f64;
        self.error = small as f64;
    }

    fn add(&mut self, number: Number) {
        self.count += 1;
        match number {
            Number::Integer(number) if !self.is_real => match self.integer.checked_add(number) {
                Some(sum) => self.integer = sum,
                None => {
                    self.overflow = true;
                    self.become_real();
                    self.add_integer(number);
                }
            },
            Number::Integer(number) => self.add_integer(number),
            Number::Real(number) => {
                if self.is_real {
                    self.overflow = false;
                } else {
                    self.become_real();
                }
                self.add_real(number);
            }
        }
    }

    fn remove(&mut self, number: Number) {
        self.count = self.count.saturating_sub(1);
        if !self.is_real {
            let left = match number {
                Number::Integer(number) => self.integer.checked_sub(number),
                Number::Real(_) => None,
            };
            if let Some(left) = left {
                self.integer = left;
                return;
            }
            self.overflow = true;
            self.become_real();
        }

        match number {
            Number::Integer(i64::MIN) => {
                self.add_integer(i64::MAX);
                self.add_integer(1);
            }
            Number::Integer(number) => self.add_integer(-number),
            Number::Real(number) => self.add_real(-number),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "as SQLite does")]
    fn sum(&self) -> f64 {
        if !self.is_real {
            self.integer as f64
        } else if self.error.is_finite() {
            self.real + self.error
        } else {
            self.real
        }
    }
}

impl Sum {
    #[allow(clippy::cast_precision_loss, reason = "as SQLite does")]
    fn value_of(&self, state: Option<&SumState>) -> Result<Value> {
        let state = state.filter(|state| state.count > 0);
        Ok(match (self.result, state) {
            (SumKind::Total, state) => Value::Real(state.map_or(0.0, SumState::sum)),
            (_, None) => Value::Null,
            (SumKind::Average, Some(state)) => Value::Real(state.sum() / state.count as f64),
            (SumKind::Sum, Some(state)) if !state.is_real => Value::Integer(state.integer),
            (SumKind::Sum, Some(state)) if state.overflow => {
                return Err(Error::UserFunctionError("integer overflow".into()));
            }
            (SumKind::Sum, Some(state)) => Value::Real(state.sum()),
        })
    }
}

impl Aggregate<SumState, Value> for Sum {
    fn init(&self, _: &mut Context<'_>) -> Result<SumState> {
        Ok(SumState::default())
    }

    fn step(&self, ctx: &mut Context<'_>, state: &mut SumState) -> Result<()> {
        if let Some(number) = self.refusals.number(ctx, 0, self.name)? {
            state.add(number);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, state: Option<SumState>) -> Result<Value> {
        self.value_of(state.as_ref())
    }
}

impl WindowAggregate<SumState, Value> for Sum {
    fn value(&self, state: Option<&mut SumState>) -> Result<Value> {
        self.value_of(state.as_deref())
    }

    fn inverse(&self, ctx: &mut Context<'_>, state: &mut SumState) -> Result<()> {
        if let Some(number) = self.refusals.number(ctx, 0, self.name)? {
            state.remove(number);
        }
        Ok(())
    }
}
