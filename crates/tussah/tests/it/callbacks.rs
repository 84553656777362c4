//! Callbacks for descriptors, signals, children and idle workers.

use std::collections::HashSet;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tussah::events::{
    on_child_exit, on_idle, on_readable, on_signal, on_writable, resolve, tcp_connect,
};
use tussah::net::{TcpListener, TcpStream};
use tussah::process::{Command, Stdio};
use tussah::signal::Signal;
use tussah::{Callback, Color, HandleExt, Runtime, post_in};

use crate::alone::{alone, descriptors, exhaust};
use crate::runtime;

/// A connection, with the end that the test has.
fn connection(runtime: &Runtime) -> (Arc<TcpStream>, std::net::TcpStream) {
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("it can listen");
        let address = listener.local_addr().expect("it has one");
        let client = std::net::TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().await.expect("it came");
        (Arc::new(stream), client)
    })
}

/// Says so when it is dropped: the sender is.
type Mark = mpsc::Sender<()>;

fn marked() -> (Mark, mpsc::Receiver<()>) {
    mpsc::channel()
}

fn read_one(stream: &TcpStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    Ok(match stream.try_read(&mut byte)? {
        0 => None,
        _ => Some(byte[0]),
    })
}

/// All registrations have ended, and let the stream go.
fn nothing_is_left(runtime: Runtime, stream: &Arc<TcpStream>) {
    let report = runtime.shutdown(Duration::from_secs(60));
    assert_eq!((report.drained, report.threads_dropped), (true, 0));
    assert_eq!(Arc::strong_count(stream), 1);
}

#[test]
fn a_callback_is_called_while_there_is_data_to_read() {
    let runtime = runtime(2);
    let (stream, mut client) = connection(&runtime);
    let (sender, receiver) = mpsc::channel();
    let this = stream.clone();
    let read = Callback::new_in(&runtime, Color(1), move |()| {
        let byte = read_one(&this).expect("it does not block");
        sender.send(byte).expect("the test listens");
        if byte.is_none() {
            on_readable(&this, None);
        }
    });
    on_readable(&stream, read);
    client.write_all(b"hello").expect("it is open");
    for byte in b"hello" {
        assert_eq!(receiver.recv(), Ok(Some(*byte)));
    }
    client.write_all(b"!").expect("it is open");
    assert_eq!(receiver.recv(), Ok(Some(b'!')));
    drop(client);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [None]);
}

#[test]
fn a_callback_that_reads_nothing_is_called_again_and_neighbours_get_their_turn() {
    let runtime = runtime(1);
    let (first, mut one) = connection(&runtime);
    let (second, mut two) = connection(&runtime);
    one.write_all(b"x").expect("it is open");
    two.write_all(b"x").expect("it is open");
    let (sender, receiver) = mpsc::channel();
    let called = |n: u8| {
        let sender = sender.clone();
        // The test may have heard enough.
        Callback::new_in(&runtime, Color(1), move |()| {
            let _ = sender.send(n);
        })
    };
    on_readable(&first, called(1));
    on_readable(&second, called(2));
    let heard: Vec<_> = receiver.iter().skip_while(|n| *n == 1).take(100).collect();
    assert_eq!(heard, [2, 1].repeat(50));
    on_readable(&first, None);
    on_readable(&second, None);
}

#[test]
fn readiness_is_looked_at_before_each_call() {
    // Both are queued when the first one runs, which reads what both were to be called for.
    let runtime = runtime(1);
    let (stream, mut client) = connection(&runtime);
    let same = Arc::new(runtime.block_on(async { duplicate(&stream) }));
    let calls = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = mpsc::channel();
    for this in [stream.clone(), same.clone()] {
        let (calls, sender) = (calls.clone(), sender.clone());
        let reads = this.clone();
        let read = Callback::new_in(&runtime, Color(1), move |()| {
            calls.fetch_add(1, Ordering::Relaxed);
            let byte = read_one(&reads).expect("a call finds something");
            sender.send(byte).expect("the test listens");
        });
        on_readable(&this, read);
    }
    for n in 0..200 {
        client.write_all(&[n]).expect("it is open");
        assert_eq!(receiver.recv(), Ok(Some(n)));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 200);
    on_readable(&stream, None);
    on_readable(&same, None);
}

fn duplicate(stream: &TcpStream) -> TcpStream {
    use std::os::fd::AsFd;
    let fd = stream.as_fd().try_clone_to_owned().expect("room for one");
    TcpStream::from_std(fd.into()).expect("it is a socket")
}

#[test]
fn no_call_follows_an_unregistration_in_the_color() {
    // The event of the readable descriptor is queued behind the one that un-registers.
    let runtime = runtime(2);
    for _ in 0..100 {
        let (stream, mut client) = connection(&runtime);
        client.write_all(b"x").expect("it is open");
        let (mark, gone) = marked();
        let this = stream.clone();
        runtime
            .post_in(Color(1), move || {
                let mark = mark.clone();
                let called = Callback::new(Color(1), move |()| mark.send(()).expect("it listens"));
                on_readable(&this, called);
                post_in(Color(1), move || on_readable(&this, None)).expect("open");
            })
            .expect("open");
        // The registration's first event comes before the un-registration, and has called once; the
        // second is queued.
        assert!(gone.iter().count() <= 1);
        assert_eq!(read_one(&stream).expect("it is open"), Some(b'x'));
    }
}

#[test]
fn a_queued_event_does_not_call_an_unregistered_callback() {
    let runtime = runtime(2);
    let (stream, mut client) = connection(&runtime);
    let (mark, gone) = marked();
    let called = Callback::new_in(&runtime, Color(1), move |()| {
        mark.send(()).expect("the test listens");
    });
    on_readable(&stream, called);
    let (begun, running) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let this = stream.clone();
    runtime
        .post_in(Color(1), move || {
            begun.send(()).expect("the test listens");
            assert!(wait.recv().is_err());
            on_readable(&this, None);
        })
        .expect("open");
    running.recv().expect("it began");
    client.write_all(b"x").expect("it is open");
    // The other worker has reported it when it has served another descriptor that came later, in
    // the same driver or its own.
    let (other, mut later) = connection(&runtime);
    later.write_all(b"y").expect("it is open");
    runtime.block_on(other.readable()).expect("it is open");
    drop(go);
    assert_eq!(gone.iter().count(), 0);
}

#[test]
fn a_callback_can_unregister_and_replace_itself() {
    // The first call may come before the one who has registered it, elsewhere, is back.
    for _ in 0..200 {
        let runtime = runtime(2);
        let (stream, mut client) = connection(&runtime);
        client.write_all(b"xyz").expect("it is open");
        let (sender, receiver) = mpsc::channel();
        let (first, this) = (sender.clone(), stream.clone());
        let callback = Callback::new_in(&runtime, Color(1), move |()| {
            first.send("first").expect("the test listens");
            let (second, inner) = (sender.clone(), this.clone());
            let replacement = Callback::new(Color(2), move |()| {
                second.send("second").expect("the test listens");
                on_readable(&inner, None);
            });
            on_readable(&this, replacement);
        });
        on_readable(&stream, callback);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), ["first", "second"]);
        nothing_is_left(runtime, &stream);
    }
}

#[test]
fn both_directions_are_registered_each_by_itself() {
    let runtime = runtime(2);
    let (stream, mut client) = connection(&runtime);
    let (sender, receiver) = mpsc::channel();
    let (writes, this) = (sender.clone(), stream.clone());
    let mut rest = vec![7; 5_000_000];
    let write = Callback::new_in(&runtime, Color(1), move |()| {
        match this.try_write(&rest) {
            Ok(len) => drop(rest.drain(..len)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        if rest.is_empty() {
            on_writable(&this, None);
            writes.send("written").expect("the test listens");
        }
    });
    let this = stream.clone();
    let read = Callback::new_in(&runtime, Color(1), move |()| {
        assert_eq!(read_one(&this).expect("it is open"), Some(b'x'));
        on_readable(&this, None);
        sender.send("read").expect("the test listens");
    });
    on_writable(&stream, write);
    on_readable(&stream, read);
    client.write_all(b"x").expect("it is open");
    assert_eq!(receiver.recv(), Ok("read"));
    let mut all = vec![0; 5_000_000];
    client.read_exact(&mut all).expect("it comes");
    assert_eq!(receiver.iter().collect::<Vec<_>>(), ["written"]);
    nothing_is_left(runtime, &stream);
}

#[test]
fn events_of_one_color_never_overlap() {
    let runtime = runtime(4);
    let alone = Arc::new(Mutex::new(0));
    let (sender, receiver) = mpsc::channel();
    let mut clients = Vec::new();
    for _ in 0..16 {
        let (stream, client) = connection(&runtime);
        clients.push(client);
        let (alone, sender, this) = (alone.clone(), sender.clone(), stream.clone());
        let read = Callback::new_in(&runtime, Color(1), move |()| {
            let mut alone = alone.try_lock().expect("one color");
            match read_one(&this).expect("it is open") {
                Some(_) => *alone += 1,
                None => {
                    on_readable(&this, None);
                    sender.send(()).expect("the test listens");
                }
            }
        });
        on_readable(&stream, read);
    }
    std::thread::scope(|scope| {
        for mut client in clients {
            scope.spawn(move || {
                for _ in 0..300 {
                    client.write_all(b"x").expect("it is open");
                }
            });
        }
    });
    (0..16).for_each(|_| receiver.recv().expect("each comes to its end"));
    assert_eq!(*alone.lock().expect("not poisoned"), 16 * 300);
}

#[test]
fn a_panic_stays_in_its_call() {
    let runtime = runtime(1);
    let (stream, mut client) = connection(&runtime);
    let (sender, receiver) = mpsc::channel();
    let this = stream.clone();
    let read = Callback::new_in(&runtime, Color(1), move |()| {
        let byte = read_one(&this).expect("it is open");
        assert_ne!(byte, Some(b'!'), "this call only");
        sender.send(byte).expect("the test listens");
    });
    on_readable(&stream, read);
    client.write_all(b"a!b").expect("it is open");
    assert_eq!(receiver.recv(), Ok(Some(b'a')));
    assert_eq!(receiver.recv(), Ok(Some(b'b')));
    on_readable(&stream, None);
}

#[test]
fn the_end_of_the_runtime_ends_registrations() {
    let runtime = runtime(2);
    let (stream, _client) = connection(&runtime);
    let (mark, gone) = marked();
    let handle = runtime.handle().clone();
    let make = |mark: Mark| {
        Callback::new_in(&handle, Color(1), move |()| {
            mark.send(()).expect("nobody writes");
        })
    };
    on_readable(&stream, make(mark.clone()));
    runtime
        .on_signal(Signal::WINCH, make(mark.clone()))
        .expect("it can be");
    assert_eq!(Arc::strong_count(&stream), 2);
    drop(runtime);
    assert_eq!(Arc::strong_count(&stream), 1);
    // Too late: what comes is dropped.
    on_readable(&stream, make(mark.clone()));
    handle.on_idle(make(mark.clone()));
    assert_eq!(Arc::strong_count(&stream), 1);
    drop(mark);
    assert_eq!(gone.iter().count(), 0);
}

#[test]
fn a_priority_orders_colors() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let (begun, running) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    // The only worker is held while all descriptors become ready.
    let mut streams = Vec::new();
    for n in 0..6u8 {
        let (stream, client) = connection(&runtime);
        streams.push((n, stream, client));
    }
    runtime
        .post_in(Color(100), move || {
            begun.send(()).expect("the test listens");
            assert!(wait.recv().is_err());
        })
        .expect("open");
    running.recv().expect("it began");
    for (n, stream, client) in &mut streams {
        client.write_all(&[*n]).expect("it is open");
        let (sender, this, n) = (sender.clone(), stream.clone(), *n);
        let priority = if n == 5 { 10 } else { 0 };
        let make = move || {
            Callback::with_priority(Color(n.into()), priority, move |()| {
                on_readable(&this, None);
                sender.send(n).expect("the test listens");
            })
        };
        // `with_priority` is for the current runtime.
        on_readable(stream, runtime.block_on(async { make() }));
    }
    drop((go, sender));
    let order: Vec<_> = receiver.iter().collect();
    assert_eq!(order, [5, 0, 1, 2, 3, 4]);
}

#[test]
fn a_thousand_registrations_leave_nothing() {
    alone("callbacks::a_thousand_registrations_leave_nothing", || {
        let runtime = runtime(2);
        let (stream, _client) = connection(&runtime);
        let (mark, gone) = marked();
        let make = |n: u64| {
            let mark = mark.clone();
            Callback::new_in(&runtime, Color(n % 7), move |()| {
                let _ = mark.send(());
            })
        };
        let before = descriptors();
        for n in 0..1000 {
            on_readable(&stream, make(n));
            runtime.on_idle(make(n));
            runtime
                .on_signal(Signal::WINCH, make(n))
                .expect("there are descriptors");
            runtime
                .on_signal(Signal::WINCH, None)
                .expect("it always can");
            on_readable(&stream, None);
        }
        runtime.on_idle(None);
        drop(mark);
        // Until the last callback is dropped, each in its color.
        gone.iter().for_each(drop);
        // The drivers of both workers have some, and signals.
        assert!(descriptors() < before + 50);
        nothing_is_left(runtime, &stream);
    });
}

#[test]
fn a_listener_is_readable_when_it_can_accept() {
    let runtime = runtime(2);
    let listener = runtime.block_on(async {
        let builder = TcpListener::builder().connections_max(2);
        Arc::new(builder.bind("127.0.0.1:0").expect("it can listen"))
    });
    let address = listener.local_addr().expect("it has one");
    let (sender, receiver) = mpsc::channel();
    let (this, calls) = (listener.clone(), Arc::new(AtomicUsize::new(0)));
    let counts = calls.clone();
    let accept = Callback::new_in(&runtime, Color(1), move |()| {
        counts.fetch_add(1, Ordering::Relaxed);
        let (stream, peer) = this.try_accept().expect("a call finds one");
        sender.send((stream, peer)).expect("the test listens");
    });
    on_readable(&listener, accept);
    let clients: Vec<_> = (0..3)
        .map(|_| std::net::TcpStream::connect(address).expect("it listens"))
        .collect();
    let accepted: Vec<_> = (0..2).map(|_| receiver.recv().expect("it came")).collect();
    // There is no place for the third one before a stream is dropped, and no call.
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert!(receiver.try_recv().is_err());
    drop(accepted);
    receiver.recv().expect("there is a place now");
    on_readable(&listener, None);
    drop(clients);
}

#[test]
fn pipes_are_waited_for_too() {
    let runtime = runtime(2);
    let (reader, writer) = runtime.block_on(async { tussah::pipe::pipe().expect("it can be") });
    let (reader, writer) = (Arc::new(reader), Arc::new(writer));
    let (sender, receiver) = mpsc::channel();
    let this = writer.clone();
    let write = Callback::new_in(&runtime, Color(1), move |()| {
        on_writable(&this, None);
        post_in(Color(1), {
            let this = this.clone();
            move || drop(tussah::spawn(async move { this.write_all(b"x").await }))
        })
        .expect("open");
    });
    let this = reader.clone();
    let read = Callback::new_in(&runtime, Color(2), move |()| {
        let mut buffer = [0; 16];
        let len = this.try_read(&mut buffer).expect("it is open");
        sender.send(len).expect("the test listens");
        if len == Some(0) {
            on_readable(&this, None);
        }
    });
    on_readable(&reader, read);
    on_writable(&writer, write);
    drop(writer);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [Some(1), Some(0)]);
}

#[test]
fn signals_call_back_until_unregistered() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    let make = |n: u8| {
        let sender = sender.clone();
        Callback::new_in(&runtime, Color(1), move |()| {
            sender.send(n).expect("the test listens");
        })
    };
    let raise = || {
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::USR2).expect("it is me");
    };
    on_signal(Signal::USR2, make(1)).expect("it can be");
    raise();
    assert_eq!(receiver.recv(), Ok(1));
    runtime.on_signal(Signal::USR2, make(2)).expect("it can be");
    raise();
    assert_eq!(receiver.recv(), Ok(2));
    raise();
    assert_eq!(receiver.recv(), Ok(2));
    let error = on_signal(Signal::KILL, make(3)).expect_err("nobody can");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    runtime
        .on_signal(Signal::USR2, None)
        .expect("it always can");
    // The listening has ended when the callback is gone. The signal does nothing then.
    drop(sender);
    assert_eq!(receiver.iter().count(), 0);
    raise();
}

#[test]
fn the_end_of_a_child_calls_back_once() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    let make = || {
        let sender = sender.clone();
        Callback::new_in(&runtime, Color(1), move |status: io::Result<_>| {
            let status: std::process::ExitStatus = status.expect("it is a child");
            sender.send(status.code()).expect("the test listens");
        })
    };
    let child = |code: &str| {
        let mut command = Command::new("sh");
        let command = command.args(["-c", code]).stdin(Stdio::piped());
        runtime.block_on(command.spawn()).expect("there is a shell")
    };
    on_child_exit(child("exit 7"), make());
    assert_eq!(receiver.recv(), Ok(Some(7)));
    let mut std = std::process::Command::new("sh");
    // The registration waits for it.
    #[allow(clippy::zombie_processes)]
    let other = std.args(["-c", "exit 8"]).spawn().expect("there is one");
    runtime.on_child_exit(other.id(), make());
    assert_eq!(receiver.recv(), Ok(Some(8)));
    // Un-registered, the child is dropped and goes on: it ends when its input does.
    let mut third = child("read x; exit 9");
    let (id, input) = (third.id(), third.stdin.take());
    runtime.on_child_exit(third, make());
    runtime.on_child_exit(id, None);
    drop(input);
    drop(sender);
    assert_eq!(receiver.iter().count(), 0);
}

#[test]
fn a_registration_by_number_takes_the_child_over() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    let make = |of: u32| {
        let sender = sender.clone();
        Callback::new_in(&runtime, Color(1), move |status: io::Result<_>| {
            let status: std::process::ExitStatus = status.expect("it is a child");
            sender.send((of, status.code())).expect("the test listens");
        })
    };
    for _ in 0..20 {
        let mut command = Command::new("sh");
        let command = command.args(["-c", "read x; exit 5"]).stdin(Stdio::piped());
        let mut child = runtime.block_on(command.spawn()).expect("a shell");
        let (id, input) = (child.id(), child.stdin.take());
        runtime.on_child_exit(child, make(1));
        runtime.on_child_exit(id, make(2));
        runtime.on_child_exit(id, make(3));
        drop(input);
        assert_eq!(receiver.recv(), Ok((3, Some(5))));
    }
}

#[test]
fn the_end_of_a_child_calls_back_without_descriptors() {
    alone(
        "callbacks::the_end_of_a_child_calls_back_without_descriptors",
        || {
            let runtime = runtime(1);
            let mut command = std::process::Command::new("sh");
            let command = command
                .args(["-c", "read x; exit 6"])
                .stdin(std::process::Stdio::piped());
            // The registration waits for it.
            #[allow(clippy::zombie_processes)]
            let mut child = command.spawn().expect("a shell");
            let (sender, receiver) = mpsc::channel();
            let callback = Callback::new_in(&runtime, Color(1), move |status: io::Result<_>| {
                let status: std::process::ExitStatus = status.expect("it is a child");
                sender.send(status.code()).expect("the test listens");
            });
            let (_, filled) = exhaust();
            on_child_exit(child.id(), callback);
            runtime.block_on(tussah::yield_now());
            drop(child.stdin.take());
            assert_eq!(receiver.recv(), Ok(Some(6)));
            drop(filled);
        },
    );
}

#[test]
fn a_number_that_is_no_child_is_an_error() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let callback = Callback::new_in(&runtime, Color(1), move |status: io::Result<_>| {
        let error = status.expect_err("it is no child").to_string();
        sender.send(error).expect("the test listens");
    });
    on_child_exit(0, callback.clone());
    let error = receiver.recv().expect("it is called");
    assert!(error.starts_with("wait for process 0: "), "{error}");
    on_child_exit(1, callback);
    let error = receiver.recv().expect("it is called");
    assert!(error.starts_with("wait for process 1: "), "{error}");
}

#[test]
fn idle_is_called_when_nothing_else_is_left() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let idle = sender.clone();
    runtime
        .post(move || {
            let mut calls = 0;
            on_idle(Callback::new(Color(1), move |()| {
                calls += 1;
                idle.send(100 + calls).expect("the test listens");
                if calls == 3 {
                    on_idle(None);
                }
            }));
            for n in 0..5 {
                let sender = sender.clone();
                let event = move || sender.send(n).expect("the test listens");
                post_in(Color(10 + n), event).expect("open");
            }
        })
        .expect("open");
    let order: Vec<_> = receiver.iter().collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 101, 102, 103]);
}

#[test]
fn idle_lets_descriptors_be_served() {
    let runtime = runtime(1);
    let (stream, mut client) = connection(&runtime);
    let (mark, gone) = marked();
    runtime.on_idle(Callback::new_in(&runtime, Color(1), move |()| {
        let _ = &mark;
    }));
    client.write_all(b"x").expect("it is open");
    runtime.block_on(stream.readable()).expect("it is open");
    runtime.on_idle(None);
    assert!(gone.recv().is_err());
}

#[test]
fn connections_and_names_come_by_callback() {
    let runtime = runtime(2);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("it can listen");
    let address = listener.local_addr().expect("it has one");
    let (sender, receiver) = mpsc::channel();
    let connected = Callback::new_in(&runtime, Color(1), move |stream: io::Result<TcpStream>| {
        let peer = stream.and_then(|stream| stream.peer_addr());
        let peer = peer.map_err(|error| error.kind());
        sender.send(peer).expect("the test listens");
    });
    tcp_connect(address, connected.clone());
    assert_eq!(receiver.recv(), Ok(Ok(address)));
    tcp_connect(("localhost", address.port()), connected.clone());
    assert_eq!(receiver.recv(), Ok(Ok(address)));
    drop(listener);
    // A process that another test starts has the listener, too, until it runs its program.
    let call = loop {
        let call = tcp_connect(address, connected.clone());
        match receiver.recv().expect("it is told") {
            Ok(_) => std::thread::yield_now(),
            Err(kind) => {
                assert_eq!(kind, ErrorKind::ConnectionRefused);
                break call;
            }
        }
    };
    call.cancel(); // which does nothing now

    let (found, addresses) = mpsc::channel();
    let resolved = Callback::new_in(&runtime, Color(1), move |answer: Result<_, _>| {
        let answer: tussah::dns::IpAddresses = answer.expect("everybody has it");
        let here = answer.iter().all(|address| address.is_loopback());
        found.send(here).expect("the test listens");
    });
    resolve("localhost", resolved);
    assert_eq!(addresses.iter().collect::<HashSet<_>>(), [true].into());
}

#[test]
fn a_call_that_is_cancelled_in_the_color_does_not_come() {
    let runtime = runtime(2);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("it can listen");
    let address = listener.local_addr().expect("it has one");
    let (mark, gone) = marked();
    runtime
        .post_in(Color(1), move || {
            let connected = move |_: io::Result<TcpStream>| mark.send(()).expect("it listens");
            let call = tcp_connect(address, Callback::new(Color(1), connected));
            // Time enough to connect, if another worker could do it beside this event.
            std::net::TcpStream::connect(address).expect("it listens");
            call.cancel();
        })
        .expect("open");
    assert_eq!(gone.iter().count(), 0);
}
