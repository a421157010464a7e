//! The objects of the API. Members and values that this version does not know are kept.
//!
//! Most structs are made from the OpenAPI document. Write them with
//! `..Default::default()`, so that a new member does not break the code:
//!
//! ```
//! use sortie_worker::models::RunDefinition;
//!
//! let definition = RunDefinition {
//!     image: Some("exec:/bin/echo".into()),
//!     command: Some(vec!["hello".into()]),
//!     ..Default::default()
//! };
//! assert_eq!(
//!     serde_json::to_string(&definition).unwrap(),
//!     r#"{"command":["hello"],"image":"exec:/bin/echo"}"#
//! );
//! ```

mod generated;

use std::fmt;
use std::time::SystemTime;

use base64::Engine as _;
use serde::{Deserialize, Serialize};

pub use generated::*;

/// The members of an object that this version does not know.
pub type Extra = serde_json::Map<String, serde_json::Value>;

/// An RFC 3339 time, as the server wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub String);

impl Time {
    /// Returns the time; `None` if the text is not an RFC 3339 time.
    pub fn system_time(&self) -> Option<SystemTime> {
        crate::time::parse(&self.0)
    }
}

impl From<SystemTime> for Time {
    fn from(at: SystemTime) -> Self {
        Self(crate::time::format(at))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that `Debug` does not show.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl State {
    /// Returns whether the run has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Orphaned
        )
    }
}

impl Task {
    /// Returns whether the run has succeeded. A skipped run has not.
    pub fn succeeded(&self) -> bool {
        self.state == State::Completed && self.skipped != Some(true)
    }
}

impl RunDefinition {
    /// Sets the standard input, at most 256 KiB.
    #[must_use]
    pub fn with_input(mut self, input: impl AsRef<[u8]>) -> Self {
        self.input = Some(base64::engine::general_purpose::STANDARD.encode(input));
        self
    }
}

impl LogLine {
    /// Returns the bytes of the line; empty if it has none.
    pub fn bytes(&self) -> Vec<u8> {
        let data = self.data.as_deref().unwrap_or_default();
        base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap_or_default()
    }
}

/// Makes an enum of strings, which keeps other values in `Unknown`.
macro_rules! values {
    ($(#[$doc:meta])* $name:ident { $first:ident = $first_text:literal $(, $variant:ident = $text:literal)* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            #[doc = concat!("`", $first_text, "`")]
            $first,
            $(
                #[doc = concat!("`", $text, "`")]
                $variant,
            )*
            /// A value that this version does not know.
            Unknown(String),
        }

        impl $name {
            /// Returns the value.
            pub fn as_str(&self) -> &str {
                match self {
                    Self::$first => $first_text,
                    $(Self::$variant => $text,)*
                    Self::Unknown(text) => text,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Unknown(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $first_text => Self::$first,
                    $($text => Self::$variant,)*
                    _ => Self::Unknown(text.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(Self::from(text.as_ref()))
            }
        }
    };
}
use values;
