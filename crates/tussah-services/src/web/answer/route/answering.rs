//! The future of a handler and its result.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::web::answer::reply::Reply;
use crate::web::answer::spool::Keeping;

/// The result of a handler.
pub(crate) enum Answer {
    Reply(Reply),
    /// The request has to wait for its body, and then begins again. It must not occupy the stage
    /// meanwhile, because the client determines how long that takes.
    Later(Keeping),
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The future of a handler. It stays whole until it is dropped, because its destructor may panic.
pub(crate) enum Answering {
    Reply(Boxed<Reply>),
    Answer(Boxed<Answer>),
}

impl Answering {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self {
            Self::Reply(reply) => reply.as_mut().poll(cx).map(Answer::Reply),
            Self::Answer(answer) => answer.as_mut().poll(cx),
        }
    }
}
