//! The operators of jq.

use std::ops;

use jaq_core::{ValR, ops::Math};
use jaq_json::{Num, Val};

use super::value::{Error, JqValue, done};

/// The longest text that a multiplication makes, in bytes.
const MAX_REPEATED: usize = 1 << 30;

impl ops::Add for JqValue {
    type Output = ValR<Self>;

    fn add(self, other: Self) -> ValR<Self> {
        use Val::{Arr, Null, Num, Obj, TStr};
        match (self.0, other.0) {
            (Null, value) | (value, Null) => Ok(Self(value)),
            (l @ Num(_), r @ Num(_))
            | (l @ TStr(_), r @ TStr(_))
            | (l @ Arr(_), r @ Arr(_))
            | (l @ Obj(_), r @ Obj(_)) => done(l + r),
            (l, r) => Err(Error::math(Self(l), Math::Add, Self(r))),
        }
    }
}

impl ops::Sub for JqValue {
    type Output = ValR<Self>;

    fn sub(self, other: Self) -> ValR<Self> {
        use Val::{Arr, Num};
        match (self.0, other.0) {
            (l @ Num(_), r @ Num(_)) | (l @ Arr(_), r @ Arr(_)) => done(l - r),
            (l, r) => Err(Error::math(Self(l), Math::Sub, Self(r))),
        }
    }
}

impl ops::Mul for JqValue {
    type Output = ValR<Self>;

    fn mul(self, other: Self) -> ValR<Self> {
        use Val::{Num, Obj, TStr};
        match (self.0, other.0) {
            (Num(l), Num(r)) => {
                let product = l.clone() * r.clone();
                // A product of integers has no sign if it is zero; that of doubles has.
                let is_zero = matches!(product, jaq_json::Num::Int(0));
                let float = |n: jaq_json::Num| jaq_std::ValT::as_f64(&Self(Num(n))).unwrap_or(0.0);
                Ok(if is_zero { JqValue::number(float(l) * float(r)) } else { Self(Num(product)) })
            }
            (l @ Obj(_), r @ Obj(_)) => done(l * r),
            (TStr(text), count @ Num(_)) | (count @ Num(_), TStr(text)) => {
                let count = jaq_std::ValT::as_f64(&Self(count)).unwrap_or(f64::NAN);
                if count.is_nan() || count < 0.0 {
                    return Ok(Self::default());
                }

                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "not negative"
                )]
                let count = count as usize;
                if text.len().saturating_mul(count) > MAX_REPEATED {
                    return Err(Error::str("the repeated string is too long"));
                }
                Ok(Self::text(text.repeat(count)))
            }
            (l, r) => Err(Error::math(Self(l), Math::Mul, Self(r))),
        }
    }
}

impl ops::Div for JqValue {
    type Output = ValR<Self>;

    fn div(self, other: Self) -> ValR<Self> {
        use Val::{Num, TStr};
        match (self.0, other.0) {
            (l @ Num(_), r @ Num(_)) if r == Val::from(0_isize) => Err(Error::str(format_args!(
                "{} and {} cannot be divided because the divisor is zero",
                Self(l),
                Self(r)
            ))),
            (l @ Num(_), r @ Num(_)) | (l @ TStr(_), r @ TStr(_)) => done(l / r),
            (l, r) => Err(Error::math(Self(l), Math::Div, Self(r))),
        }
    }
}

impl ops::Rem for JqValue {
    type Output = ValR<Self>;

    fn rem(self, other: Self) -> ValR<Self> {
        let numbers = match (&self.0, &other.0) {
            (Val::Num(_), Val::Num(_)) => {
                jaq_std::ValT::as_f64(&self).zip(jaq_std::ValT::as_f64(&other))
            }
            _ => None,
        };
        let Some((l, r)) = numbers else { return Err(Error::math(self, Math::Rem, other)) };
        if l.is_nan() || r.is_nan() {
            return Ok(JqValue::number(f64::NAN));
        }

        // The rest of the integers: jq cuts off fractions.
        #[allow(clippy::cast_possible_truncation, reason = "fractions are cut off")]
        let whole = |number: f64| number as i64;
        let r = whole(r);
        if r == 0 {
            return Err(Error::str(format_args!(
                "{self} and {other} cannot be divided because the divisor is zero"
            )));
        }
        let rest = whole(l).wrapping_rem(r);
        Ok(Self(Val::Num(Num::from_integral(rest))))
    }
}

impl ops::Neg for JqValue {
    type Output = ValR<Self>;

    fn neg(self) -> ValR<Self> {
        match self.0 {
            Val::Num(Num::Int(0)) => Ok(JqValue::number(-0.0)),
            Val::Num(Num::Dec(literal)) => Ok(Self(Val::Num(-Num::from_dec_str(&literal)))),
            number @ Val::Num(_) => done(-number),
            other => Err(Error::typ(Self(other), "number")),
        }
    }
}
