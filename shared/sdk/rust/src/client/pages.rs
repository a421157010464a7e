//! Lists over all pages.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt as _};

use super::Result;

/// The items of all pages: call [`Items::next`], or use it as a `Stream`. A page is read when it
/// is needed.
#[must_use]
pub struct Items<T> {
    stream: Pin<Box<dyn Stream<Item = Result<T>> + Send>>,
}

impl<T: Send + 'static> Items<T> {
    /// `get` returns the items at a place, and the place of the next page.
    pub(crate) fn new<F, Fut>(get: F) -> Self
    where
        F: Fn(Option<String>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(Vec<T>, Option<String>)>> + Send,
    {
        let start = Some((None, Vec::new().into_iter()));
        let stream = futures_util::stream::unfold((start, get), |(state, get)| async move {
            let (mut place, mut items) = state?;
            loop {
                if let Some(item) = items.next() {
                    return Some((Ok(item), (Some((place, items)), get)));
                }
                if place == Some(None) {
                    return None;
                }
                match get(place.flatten()).await {
                    Ok((page, next)) => (place, items) = (Some(next), page.into_iter()),
                    Err(error) => return Some((Err(error), (None, get))),
                }
            }
        });
        Self {
            stream: Box::pin(stream),
        }
    }

    /// Returns the next item; `None` behind the last one. After an error there are no more.
    pub async fn next(&mut self) -> Option<Result<T>> {
        self.stream.next().await
    }

    /// Returns all items, at most `most`.
    ///
    /// # Errors
    ///
    /// Those of the calls for the pages.
    pub async fn collect(mut self, most: usize) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while items.len() < most {
            match self.next().await {
                Some(item) => items.push(item?),
                None => break,
            }
        }
        Ok(items)
    }
}

impl<T> Stream for Items<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.as_mut().poll_next(context)
    }
}

impl<T> std::fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Items")
    }
}
