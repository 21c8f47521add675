//! `median`, `percentile`, standard deviation and variance.

use rusqlite::{
    Connection, Error, Result,
    functions::{Aggregate, Context, WindowAggregate},
};

use super::{FLAGS, Refusals};

pub(super) fn add(connection: &Connection, refusals: &Refusals) -> Result<()> {
    for (name, arguments) in [("median", 1), ("percentile", 2)] {
        let percentile = Percentile { name, refusals: refusals.clone() };
        connection.create_window_function(name, arguments, FLAGS, percentile)?;
    }

    for (name, sample, root) in [
        ("stddev", true, true),
        ("stddev_samp", true, true),
        ("stddev_pop", false, true),
        ("variance", true, false),
        ("var_samp", true, false),
        ("var_pop", false, false),
    ] {
        let spread = Spread { name, sample, root, refusals: refusals.clone() };
        connection.create_window_function(name, 1, FLAGS, spread)?;
    }
    Ok(())
}

/// `median(x)`, and `percentile(x, p)` with p from 0 to 100, interpolated.
struct Percentile {
    name: &'static str,
    refusals: Refusals,
}

/// The numbers so far, sorted when a result is asked for.
#[derive(Debug)]
struct Numbers {
    all: Vec<f64>,
    percent: f64,
}

impl Numbers {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a position in a list"
    )]
    fn result(&mut self) -> Option<f64> {
        // Numbers that are sorted but for the last are sorted in one pass.
        self.all.sort_by(f64::total_cmp);
        let position = self.percent / 100.0 * self.all.len().checked_sub(1)? as f64;
        let low = self.all[position.floor() as usize];
        let high = self.all[position.ceil() as usize];
        Some(low + (high - low) * position.fract())
    }
}

impl Aggregate<Numbers, Option<f64>> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Numbers> {
        Ok(Numbers { all: Vec::new(), percent: 50.0 })
    }

    fn step(&self, ctx: &mut Context<'_>, numbers: &mut Numbers) -> Result<()> {
        if ctx.len() > 1 {
            let given = self.refusals.real(ctx, 1, self.name)?;
            let given = given.filter(|percent| (0.0..=100.0).contains(percent));
            let problem = "the second argument of percentile is a number from 0 to 100";
            numbers.percent = given.ok_or_else(|| Error::UserFunctionError(problem.into()))?;
        }

        numbers.all.extend(self.refusals.real(ctx, 0, self.name)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, numbers: Option<Numbers>) -> Result<Option<f64>> {
        Ok(numbers.and_then(|mut numbers| numbers.result()))
    }
}

impl WindowAggregate<Numbers, Option<f64>> for Percentile {
    fn value(&self, numbers: Option<&mut Numbers>) -> Result<Option<f64>> {
        Ok(numbers.and_then(Numbers::result))
    }

    fn inverse(&self, ctx: &mut Context<'_>, numbers: &mut Numbers) -> Result<()> {
        let Some(number) = self.refusals.real(ctx, 0, self.name)? else { return Ok(()) };
        numbers.all.sort_by(f64::total_cmp);
        if let Ok(index) = numbers.all.binary_search_by(|other| other.total_cmp(&number)) {
            numbers.all.remove(index);
        }
        Ok(())
    }
}

/// Standard deviation and variance, by Welford's method.
struct Spread {
    name: &'static str,
    sample: bool,
    root: bool,
    refusals: Refusals,
}

/// The count, the mean, and the sum of squares of differences from it.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn result(&self, moments: Moments) -> Option<f64> {
        let by = if self.sample { moments.count - 1.0 } else { moments.count };
        if by <= 0.0 {
            return None;
        }

        let variance = moments.squares.max(0.0) / by;
        Some(if self.root { variance.sqrt() } else { variance })
    }
}

impl Aggregate<Moments, Option<f64>> for Spread {
    fn init(&self, _: &mut Context<'_>) -> Result<Moments> {
        Ok(Moments::default())
    }

    fn step(&self, ctx: &mut Context<'_>, moments: &mut Moments) -> Result<()> {
        if let Some(number) = self.refusals.real(ctx, 0, self.name)? {
            moments.count += 1.0;
            let difference = number - moments.mean;
            moments.mean += difference / moments.count;
            moments.squares += difference * (number - moments.mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, moments: Option<Moments>) -> Result<Option<f64>> {
        Ok(self.result(moments.unwrap_or_default()))
    }
}

impl WindowAggregate<Moments, Option<f64>> for Spread {
    fn value(&self, moments: Option<&mut Moments>) -> Result<Option<f64>> {
        Ok(self.result(moments.copied().unwrap_or_default()))
    }

    fn inverse(&self, ctx: &mut Context<'_>, moments: &mut Moments) -> Result<()> {
        let Some(number) = self.refusals.real(ctx, 0, self.name)? else { return Ok(()) };
        let left = moments.count - 1.0;
        if left < 1.0 {
            *moments = Moments::default();
            return Ok(());
        }

        let mean = moments.mean - (number - moments.mean) / left;
        let squares = moments.squares - (number - moments.mean) * (number - mean);
        *moments = Moments { count: left, mean, squares };
        Ok(())
    }
}
