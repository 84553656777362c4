//! Explains why an address cannot be bound, and names the process that uses it.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use tussah::OpError;

use crate::web::config::ListenAddress;

/// Returns a sentence that explains why an address cannot be bound. If the operating system
/// permits, the sentence also names the process that uses the address.
///
/// The function searches `/proc`, which can take a while if there are many processes.
#[must_use]
pub fn explain(address: &ListenAddress, error: &io::Error) -> String {
    let reason = match (error.kind(), address) {
        (io::ErrorKind::AddrInUse, _) => in_use(Path::new("/proc"), address),
        (io::ErrorKind::PermissionDenied, ListenAddress::Tcp(tcp)) if tcp.port() < 1024 => {
            "permission denied (ports below 1024 need CAP_NET_BIND_SERVICE or a lower \
             net.ipv4.ip_unprivileged_port_start)"
                .to_owned()
        }
        (io::ErrorKind::PermissionDenied, _) => "permission denied".to_owned(),
        (io::ErrorKind::AddrNotAvailable, _) => {
            "address not available (no interface of this machine has it)".to_owned()
        }
        // An error of the runtime repeats the address; its source is the system's error alone.
        _ => match OpError::of(error).and_then(Error::source) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        },
    };
    format!("cannot bind {address}: {reason}")
}

fn in_use(proc: &Path, address: &ListenAddress) -> String {
    let what = match address {
        ListenAddress::Tcp(tcp) => format!("port {}", tcp.port()),
        ListenAddress::Unix(path) => path.display().to_string(),
    };
    let sockets = match address {
        ListenAddress::Tcp(tcp) => tcp_listeners(proc, *tcp),
        ListenAddress::Unix(path) => match unix_listeners(proc, path) {
            Ok(sockets) => sockets,
            Err(_) => return format!("{what} is in use"),
        },
    };
    if let (true, ListenAddress::Unix(path)) = (sockets.is_empty(), address) {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        return match is_socket {
            true => format!("{what} is a stale socket that nobody listens on; remove it"),
            false => format!("{what} exists and is not a socket"),
        };
    }
    let user = sockets.iter().find_map(|socket| socket.user);
    let holders = holders(
        proc,
        &sockets.into_iter().map(|socket| socket.inode).collect(),
    );
    match (&holders[..], user) {
        ([holder], _) => format!("{what} is in use by {holder}"),
        ([first, ..], _) => format!("{what} is in use by {first} and others"),
        ([], Some(user)) => format!("{what} is in use by a process of user id {user}"),
        ([], None) => format!("{what} is in use"),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Socket {
    inode: u64,
    user: Option<u32>,
}

/// Returns the sockets that listen on a TCP port, at an address that excludes the wanted address
/// (proc_net_tcp, in the kernel's documentation).
fn tcp_listeners(proc: &Path, wanted: SocketAddr) -> Vec<Socket> {
    let tables = ["net/tcp", "net/tcp6"].map(|table| fs::read_to_string(proc.join(table)));
    let lines = tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1));
    lines
        .filter_map(|line| tcp_listener(line, wanted))
        .collect()
}

fn tcp_listener(line: &str, wanted: SocketAddr) -> Option<Socket> {
    const LISTEN: &str = "0A";
    let columns: Vec<_> = line.split_ascii_whitespace().collect();
    let (local, state) = (*columns.get(1)?, *columns.get(3)?);
    let (address, port) = local.split_once(':')?;
    let address = hex_address(address)?;
    // The wildcard of one address family may include the addresses of the other.
    let excludes = address.is_unspecified()
        || wanted.ip().is_unspecified()
        || address.to_canonical() == wanted.ip().to_canonical();
    let same = u16::from_str_radix(port, 16).ok()? == wanted.port() && excludes;
    (state == LISTEN && same).then_some(Socket {
        inode: columns.get(9)?.parse().ok()?,
        user: columns.get(7)?.parse().ok(),
    })
}

/// Parses an address in the kernel's format: words of 32 bits in the byte order of the machine.
fn hex_address(hex: &str) -> Option<IpAddr> {
    let words = hex.as_bytes().chunks(8).map(|word| {
        let word = u32::from_str_radix(str::from_utf8(word).ok()?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    if let Ok(bytes) = <[u8; 4]>::try_from(&bytes[..]) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?).into())
}

/// Returns the sockets that listen at a path (proc_pid_net(5)).
fn unix_listeners(proc: &Path, path: &Path) -> io::Result<Vec<Socket>> {
    const ACCEPTS: &str = "00010000";
    let table = fs::read(proc.join("net/unix"))?;
    let table = String::from_utf8_lossy(&table);
    let listener = |line: &str| {
        // Num RefCount Protocol Flags Type St Inode Path; the path may contain spaces.
        let (head, its_path) = line.split_at(line.find(" /")?);
        let mut columns = head.split_ascii_whitespace().skip(3);
        let (flags, inode) = (columns.next()?, columns.nth(2)?);
        let same = flags == ACCEPTS && Path::new(&its_path[1..]) == path;
        same.then_some(Socket {
            inode: inode.parse().ok()?,
            user: None,
        })
    };
    Ok(table.lines().skip(1).filter_map(listener).collect())
}

/// A process.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    pid: u32,
    name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == std::process::id() {
            return f.write_str("this process");
        }
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Returns the processes that have one of the sockets open, among those that this process may
/// inspect.
fn holders(proc: &Path, inodes: &HashSet<u64>) -> Vec<Holder> {
    let Ok(entries) = fs::read_dir(proc) else {
        return Vec::new();
    };
    let mut holders: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let has = fs::read_dir(entry.path().join("fd"))
                .ok()?
                .flatten()
                .any(|fd| {
                    let target = fs::read_link(fd.path()).unwrap_or_default();
                    let inode = target.to_str().and_then(|target| {
                        target
                            .strip_prefix("socket:[")?
                            .strip_suffix(']')?
                            .parse()
                            .ok()
                    });
                    inode.is_some_and(|inode: u64| inodes.contains(&inode))
                });
            let name = fs::read(entry.path().join("comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(&name)
                .trim_end()
                .escape_debug()
                .to_string();
            has.then_some(Holder { pid, name })
        })
        .collect();
    holders.sort();
    holders
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// Creates a `/proc` with a web server of two processes on port 8080 of 127.0.0.1, a process on
    /// all addresses at port 80, and one on port 81 that is not visible.
    fn proc() -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        let line = |n: u32, local: &str, state: &str, user: u32, inode: u32| {
            format!(
                "   {n}: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {user}        0 {inode} 1 0000000000000000 100 0 0 10 0\n"
            )
        };
        let local = if cfg!(target_endian = "little") {
            "0100007F"
        } else {
            "7F000001"
        };
        let tcp = [
            HEAD.to_owned(),
            line(0, &format!("{local}:1F90"), "0A", 33, 501),
            line(1, &format!("{local}:1F91"), "01", 33, 502), // a connection
            line(2, "00000000:0051", "0A", 7, 503),
        ];
        fs::create_dir(proc.path().join("net")).unwrap();
        fs::write(proc.path().join("net/tcp"), tcp.concat()).unwrap();
        let any = "0".repeat(32);
        let tcp6 = [
            HEAD.to_owned(),
            line(0, &format!("{any}:0050"), "0A", 0, 504),
        ];
        fs::write(proc.path().join("net/tcp6"), tcp6.concat()).unwrap();
        let unix = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01   505 /run/a web\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 1234567 /run/b\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03   506 /run/c\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03   507\n";
        fs::write(proc.path().join("net/unix"), unix).unwrap();
        let processes = [
            ("71", "nginx", 501),
            ("9", "nginx", 501),
            ("12", "caddy", 504),
            ("13", "x\u{1b}", 505),
        ];
        for (pid, name, inode) in processes {
            let process = proc.path().join(pid);
            fs::create_dir_all(process.join("fd")).unwrap();
            fs::write(process.join("comm"), format!("{name}\n")).unwrap();
            symlink("/dev/null", process.join("fd/0")).unwrap();
            symlink(format!("socket:[{inode}]"), process.join("fd/3")).unwrap();
        }
        proc
    }

    #[test]
    fn holders_are_found() {
        let proc = proc();
        let tcp = |text: &str| ListenAddress::Tcp(text.parse().unwrap());
        let unix = |text: &str| ListenAddress::Unix(text.into());
        let table = [
            (
                tcp("127.0.0.1:8080"),
                "port 8080 is in use by nginx (pid 9) and others",
            ),
            (
                tcp("0.0.0.0:8080"),
                "port 8080 is in use by nginx (pid 9) and others",
            ),
            (
                tcp("[::ffff:127.0.0.1]:8080"),
                "port 8080 is in use by nginx (pid 9) and others",
            ),
            (tcp("127.0.0.2:8080"), "port 8080 is in use"),
            (tcp("127.0.0.1:8081"), "port 8081 is in use"),
            (tcp("127.0.0.1:80"), "port 80 is in use by caddy (pid 12)"),
            (tcp("[::1]:80"), "port 80 is in use by caddy (pid 12)"),
            (
                tcp("1.2.3.4:81"),
                "port 81 is in use by a process of user id 7",
            ),
            (
                unix("/run/a web"),
                "/run/a web is in use by x\\u{1b} (pid 13)",
            ),
            (unix("/run/b"), "/run/b is in use"),
            (unix("/run/c"), "/run/c exists and is not a socket"),
        ];
        for (address, expected) in table {
            assert_eq!(in_use(proc.path(), &address), expected);
        }
        let nothing = Path::new("/nobody");
        assert_eq!(in_use(nothing, &tcp("127.0.0.1:80")), "port 80 is in use");
        assert_eq!(in_use(nothing, &unix("/run/c")), "/run/c is in use");
    }

    #[test]
    fn an_error_names_the_process_that_uses_a_port() {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        let error = TcpListener::bind(address).unwrap_err();
        let expected = format!(
            "cannot bind {address}: port {} is in use by this process",
            address.port()
        );
        assert_eq!(explain(&ListenAddress::Tcp(address), &error), expected);

        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let again = || {
            let error = UnixListener::bind(&path).unwrap_err();
            explain(&ListenAddress::Unix(path.clone()), &error)
        };
        let shown = path.display();
        let expected = format!("cannot bind unix:{shown}: {shown} is in use by this process");
        assert_eq!(again(), expected);
        drop(listener);
        assert!(again().ends_with("is a stale socket that nobody listens on; remove it"));
    }

    #[tussah::test]
    async fn the_address_is_named_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("missing/socket");
        let error = tussah::net::UnixListener::bind(&path).unwrap_err();
        let expected = format!(
            "cannot bind unix:{}: No such file or directory (os error 2)",
            path.display()
        );
        assert_eq!(explain(&ListenAddress::Unix(path), &error), expected);
    }

    #[test]
    fn other_errors_are_explained_too() {
        let address = ListenAddress::Tcp("192.0.2.1:80".parse().unwrap());
        let table = [
            (
                13,
                "cannot bind 192.0.2.1:80: permission denied (ports below 1024 need CAP_NET_BIND_SERVICE or a lower net.ipv4.ip_unprivileged_port_start)",
            ),
            (
                99,
                "cannot bind 192.0.2.1:80: address not available (no interface of this machine has it)",
            ),
            (
                24,
                "cannot bind 192.0.2.1:80: Too many open files (os error 24)",
            ),
        ];
        for (code, expected) in table {
            assert_eq!(
                explain(&address, &io::Error::from_raw_os_error(code)),
                expected
            );
        }
    }
}
