//! Colored values, and what else comes from the core.

use std::borrow::Cow;
use std::future::IntoFuture;

use tussah::{AbortHandle, BlockingHandle, Colored, Handle, JoinHandle, with_all};

use super::futures;

/// Awaits requests whose closures capture and give static, and owned, values.
macro_rules! requests {
    ($result:ident => $request:expr) => {{
        {
            let $result = "static";
            let _ = $request.await;
        }
        {
            let $result = Ok::<u32, &'static str>(1);
            let _ = $request.await;
        }
        {
            let $result = Err::<(), &'static str>("static");
            let _ = $request.await;
        }
        {
            let $result = Some(Cow::Borrowed("static"));
            let _ = $request.await;
        }
        {
            let $result: &'static [u8] = b"static";
            let _ = $request.await;
        }
        {
            let $result: fn(&str) -> &str = |text| text;
            let _ = $request.await;
        }
        {
            let $result: Box<dyn Fn(&'static str) + Send> = Box::new(drop);
            let _ = $request.await;
        }
        {
            let $result = String::new();
            let _ = $request.await;
        }
    }};
}

futures! {
    "colored/with::With" (names: Colored<Vec<&'static str>>, text: Colored<String>) {
        requests!(result => text.with(move |text| { text.clear(); result }));
        requests!(result => text.write(move |text| { text.clear(); result }));
        requests!(result => text.read(move |_| result));
        requests!(result => names.with(move |names| { names.push("static"); result }));
        requests!(result => names.read(move |_| result));
        let first: &'static str = names.read(|names| names[0]).await;
        let _: Result<u32, &'static str> = text.with(|text| text.parse().map_err(|_| "not a number")).await;
        requests!(result => text.clone().with(move |_| result));
    }
    "colored/all::WithAll" (names: Colored<Vec<&'static str>>, text: Colored<String>, number: Colored<u64>, flag: Colored<bool>) {
        requests!(result => with_all((&names, &text), move |_, _| result));
        requests!(result => with_all((&names, &text, &number), move |_, _, _| result));
        requests!(result => with_all((&names, &text, &number, &flag), move |_, _, _, _| result));
        let moved: Result<(), &'static str> = with_all((&names, &text), |names, text| {
            text.push_str(names.pop().ok_or("empty")?);
            Ok(())
        })
        .await;
    }
    "thread/join::JoinHandle" (
        text: JoinHandle<&'static str>,
        result: JoinHandle<Result<u32, &'static str>>,
        abort: AbortHandle,
    ) {
        let _ = text.await;
        let _ = (&mut result).await;
    }
    "blocking/handle::BlockingHandle" (
        text: BlockingHandle<&'static str>,
        result: BlockingHandle<Result<u32, &'static str>>,
    ) {
        let _ = text.await;
        let _ = (&mut result).await;
    }
    "runtime/idlers::Idle" (handle: Handle) { handle.idle().await }
    "thread/coop::YieldNow" () { tussah::yield_now().await }
    "thread/coop::consume_budget" () { tussah::consume_budget().await }
    "time/sleep::Sleep" () {
        let sleep = tussah::time::sleep(tussah::time::Duration::ZERO);
        sleep.into_future().await;
    }
    "wait::Notified" (notify: tussah::sync::Notify) { notify.notified().await }
}
