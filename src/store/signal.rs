//! A value that arrives once, from an event handler to the future that waits for it.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
    done: bool,
}

/// Both ends of a one-time value; clones share it. The first `send` wins.
pub(crate) struct Signal<T>(Rc<RefCell<State<T>>>);

impl<T> Clone for Signal<T> {
    fn clone(&self) -> Self {
        Signal(Rc::clone(&self.0))
    }
}

impl<T> Signal<T> {
    pub(crate) fn new() -> Self {
        Signal(Rc::new(RefCell::new(State { value: None, waker: None, done: false })))
    }

    /// Delivers the value; gives it back when another one came first.
    pub(crate) fn send(&self, value: T) -> Result<(), T> {
        let mut state = self.0.borrow_mut();
        if state.done {
            return Err(value);
        }
        state.done = true;
        state.value = Some(value);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl<T> Future for Signal<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.borrow_mut();
        match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
