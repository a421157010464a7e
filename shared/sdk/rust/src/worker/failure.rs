//! How work fails.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;

/// The kind of a failure. It decides whether the run is retried, unless
/// [`Failure::retryable`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// An error of the work itself; retried by default.
    UserCode,
    /// Input that fails validation; not retried by default.
    DataQuality,
    /// An error of a service, no memory or a full disk; retried by default.
    Infrastructure,
    /// A missing or invalid configuration; not retried by default.
    Configuration,
    /// The work took too long; retried by default.
    Timeout,
}

impl Category {
    /// Returns the name in reports, such as `USER_CODE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserCode => "USER_CODE",
            Self::DataQuality => "DATA_QUALITY",
            Self::Infrastructure => "INFRASTRUCTURE",
            Self::Configuration => "CONFIGURATION",
            Self::Timeout => "TIMEOUT",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure of the work.
///
/// `?` makes one of every error: [`Category::UserCode`], or [`Category::Infrastructure`] for
/// a full disk and for no memory.
///
/// ```
/// use sortie_worker::{Category, Failure};
///
/// fn rows(text: &str) -> Result<u64, Failure> {
///     let rows = text.trim().parse()?;
///     if rows == 0 {
///         return Err(Failure::new(Category::DataQuality, "no rows").retryable(false));
///     }
///     Ok(rows)
/// }
/// assert_eq!(rows("7").unwrap(), 7);
/// assert_eq!(rows("0").unwrap_err().category(), Category::DataQuality);
/// assert_eq!(rows("x").unwrap_err().category(), Category::UserCode);
/// ```
pub struct Failure {
    pub(crate) kind: Kind,
    pub(crate) category: Category,
    pub(crate) message: String,
    pub(crate) retryable: Option<bool>,
    pub(crate) trace: String,
}

/// Where a failure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The work named the category.
    Named,
    /// An error of another type.
    Error,
    /// The work must stop.
    Stopped,
}

impl Failure {
    /// Returns a failure with a message, which is stored and shown.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Named,
            category,
            message: message.into(),
            retryable: None,
            trace: String::new(),
        }
    }

    /// Sets whether another attempt may succeed. Without it the category decides.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = Some(retryable);
        self
    }

    /// Returns the category.
    pub fn category(&self) -> Category {
        self.category
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns whether the failure comes from [`Task::check`](crate::Task::check): the work must stop.
    pub fn is_stop(&self) -> bool {
        self.kind == Kind::Stopped
    }

    pub(crate) fn stopped(reason: impl Into<String>) -> Self {
        let failure = Self::new(Category::UserCode, reason);
        Self {
            kind: Kind::Stopped,
            ..failure
        }
    }

    pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let failure = Self::new(Category::UserCode, format!("panicked: {text}"));
        Self {
            kind: Kind::Error,
            ..failure
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_stop() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.category, self.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut category = Category::UserCode;
        let mut trace = String::new();
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(inner) = cause {
            if inner
                .downcast_ref::<std::io::Error>()
                .is_some_and(is_shortage)
            {
                category = Category::Infrastructure;
            }
            if !trace.is_empty() {
                trace.push_str("caused by: ");
            }
            trace.push_str(&format!("{inner}\n"));
            cause = inner.source();
        }
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            trace.push_str(&backtrace.to_string());
        }
        Self {
            kind: Kind::Error,
            category,
            message: error.to_string(),
            retryable: None,
            trace,
        }
    }
}

fn is_shortage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    matches!(
        error.kind(),
        K::OutOfMemory | K::StorageFull | K::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_full_disk_is_infrastructure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(failure.category(), Category::Infrastructure);
        let wrapped = io::Error::other(io::Error::from(io::ErrorKind::OutOfMemory));
        assert_eq!(
            Failure::from(io::Error::from(io::ErrorKind::NotFound)).category(),
            Category::UserCode
        );
        assert!(Failure::from(wrapped).trace.starts_with("out of memory"));
    }

    #[test]
    fn panics_have_their_message() {
        let payload: Box<dyn std::any::Any + Send> = Box::new("boom");
        assert_eq!(Failure::panicked(&*payload).message(), "panicked: boom");
        let payload: Box<dyn std::any::Any + Send> = Box::new(7);
        assert_eq!(Failure::panicked(&*payload).message(), "panicked: ");
    }
}
