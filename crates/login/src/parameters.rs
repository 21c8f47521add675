//! [`Parameters`]: those of a query or a form, bounded, each at most once (RFC 6749, 3.1).

use larder_protocol::quote::quoted;

use super::Problem;

/// The most bytes of a query or a form.
pub const MAX_BYTES: usize = 16 << 10;
/// The most parameters.
const MAX_PARAMETERS: usize = 50;

/// The parameters of a request.
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads `application/x-www-form-urlencoded`.
    ///
    /// # Errors
    /// It is too large, or has a parameter twice: two readers could each see another value.
    pub fn read(text: &[u8]) -> Result<Self, Problem> {
        if text.len() > MAX_BYTES {
            return Err(Problem::request(format!("The request is over {MAX_BYTES} bytes.")));
        }

        let mut read = Vec::<(String, String)>::new();
        for (name, value) in url::form_urlencoded::parse(text).into_owned() {
            if read.len() == MAX_PARAMETERS {
                return Err(Problem::request("The request has too many parameters."));
            }
            if read.iter().any(|(other, _)| *other == name) {
                let problem = format!("The parameter {} comes twice.", quoted(&name));
                return Err(Problem::request(problem));
            }
            read.push((name, value));
        }

        Ok(Self(read))
    }

    /// The value of a parameter. An empty one counts as none.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of a parameter that must be there.
    ///
    /// # Errors
    /// It is missing.
    pub fn required(&self, name: &str) -> Result<&str, Problem> {
        self.get(name).ok_or_else(|| Problem::request(format!("The parameter {name} is missing.")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_parameters_and_large_requests_are_refused() {
        let read = Parameters::read(b"a=1&b=&c=%20x").expect("it is read");
        assert_eq!((read.get("a"), read.get("b"), read.get("c")), (Some("1"), None, Some(" x")));
        assert!(read.required("b").is_err());

        assert!(Parameters::read(b"a=1&b=2&a=1").is_err());
        assert!(Parameters::read(b"a=1&%61=2").is_err());
        assert!(Parameters::read(&vec![b'a'; MAX_BYTES + 1]).is_err());

        let many: Vec<_> = (0..=MAX_PARAMETERS).map(|n| format!("p{n}=1")).collect();
        assert!(Parameters::read(many.join("&").as_bytes()).is_err());
    }
}
