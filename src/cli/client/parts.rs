//! [`Parts`]: the failures of a command with several parts, such as `larder put` of several files.

use super::{ClientError, complain};

/// The failures of the parts of a command, which goes on with the others.
#[derive(Debug)]
pub(super) struct Parts {
    count: usize,
    is_output_closed: bool,
    first_problem: Option<ClientError>,
}

impl Parts {
    pub(super) fn new(count: usize) -> Self {
        Self { count, is_output_closed: false, first_problem: None }
    }

    /// Notes that a part has failed, and tells why.
    ///
    /// # Errors
    /// No other part can succeed: there is none, or there is no server.
    pub(super) fn failed(&mut self, error: ClientError) -> Result<(), ClientError> {
        match error {
            // A reader who has closed the pipe wants the other parts executed all the same.
            ClientError::Closed => self.is_output_closed = true,
            error @ (ClientError::Unreachable(_) | ClientError::Interrupted) => return Err(error),
            error if self.count == 1 => return Err(error),
            error => {
                complain(&error);
                self.first_problem.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// The end of the command.
    ///
    /// # Errors
    /// The first failure of a part, which is told already.
    pub(super) fn end(self) -> Result<(), ClientError> {
        match self.first_problem {
            Some(error) => Err(error.told_already()),
            None if self.is_output_closed => Err(ClientError::Closed),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_closed_output_ends_no_other_part_and_hides_no_failure() {
        let mut parts = Parts::new(3);
        parts.failed(ClientError::Closed).unwrap();
        parts.failed(ClientError::Usage("the second".into())).unwrap();
        assert!(matches!(parts.end(), Err(ClientError::Told(2))));

        let mut parts = Parts::new(2);
        parts.failed(ClientError::Closed).unwrap();
        assert!(matches!(parts.end(), Err(ClientError::Closed)));

        let gone = Parts::new(2).failed(ClientError::Unreachable("gone".into()));
        assert!(matches!(gone, Err(ClientError::Unreachable(_))));
    }
}
