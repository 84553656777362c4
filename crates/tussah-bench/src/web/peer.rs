//! The web servers of the comparison, and the commands that start them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::config::{CONNECTIONS_MAX, Setting};

/// A server of the comparison.
#[derive(Debug)]
pub struct Peer {
    /// The name in tables and in `--peers`.
    pub name: &'static str,
    /// A description.
    pub about: &'static str,
    /// True if it takes part by default.
    pub usual: bool,
    /// The peer's own flags, separated by spaces.
    flags: &'static str,
    command: Start,
}

/// The cache size if there is no bound: slightly more than the file set.
const ALL_MEGABYTES: usize = 256;

/// A function that makes the command to start a server.
type Start = fn(&Peers, &Setting<'_>) -> Result<Command, String>;

/// All servers, in the order of the tables.
pub const ALL: &[Peer] = &[
    peer("floor", "a C program that sends prepared responses", floor),
    peer(
        "hyper",
        "hyper 1, a runtime of tokio for each core",
        |peers, setting| peers.own("hyper", setting),
    ),
    Peer {
        usual: false,
        ..peer(
            "hyper-shared",
            "hyper 1 on one runtime of tokio with workers",
            |peers, setting| peers.own("hyper-shared", setting),
        )
    },
    peer("actix-web", "actix-web 4 with workers", |peers, setting| {
        peers.own("actix-web", setting)
    }),
    peer("h2o", "h2o with threads", h2o),
    peer("lighttpd", "lighttpd with workers", lighttpd),
    peer("nginx", "nginx with workers", |_, setting| {
        nginx(setting, true)
    }),
    Peer {
        usual: false,
        ..peer(
            "nginx-anew",
            "nginx with a new connection for each FastCGI request",
            |_, setting| nginx(setting, false),
        )
    },
    Peer {
        usual: false,
        ..peer("apache", "Apache with the event MPM", apache)
    },
    peer("tussah", "the command `tussah web`", tussah),
];

const fn peer(name: &'static str, about: &'static str, command: Start) -> Peer {
    Peer {
        name,
        about,
        usual: true,
        flags: "",
        command,
    }
}

/// The locations of the programs that start servers.
#[derive(Debug)]
pub struct Peers {
    /// The command `tussah`.
    pub tussah: PathBuf,
    /// Flags of `tussah web` in addition to those that all scenarios need.
    pub tussah_flags: Vec<String>,
    /// The folder into which the floor is compiled.
    pub scratch: PathBuf,
}

impl Peer {
    /// Adds tussah with other flags, from `NAME=FLAGS`. The peer lives as long as the program.
    ///
    /// # Errors
    ///
    /// Returns an error if the text has another form.
    pub fn variant(text: &str) -> Result<&'static Peer, String> {
        let (name, flags) = text
            .split_once('=')
            .ok_or_else(|| format!("expected NAME=FLAGS, not {text}"))?;
        Ok(Box::leak(Box::new(Peer {
            flags: flags.to_owned().leak(),
            ..peer(
                format!("tussah-{name}").leak(),
                "a variant of tussah",
                tussah,
            )
        })))
    }
}

impl Peers {
    /// Returns the command that starts a server.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is not available; the message states what to do about it.
    pub fn command(&self, peer: &Peer, setting: &Setting<'_>) -> Result<Command, String> {
        let mut command = (peer.command)(self, setting)?;
        command.args(peer.flags.split_whitespace());
        Ok(command)
    }

    /// Returns the command for a server that is part of this program.
    fn own(&self, name: &str, setting: &Setting<'_>) -> Result<Command, String> {
        if !cfg!(feature = "web-peers") {
            return Err(
                "this program was built without it; build with --features web-peers".into(),
            );
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["web-serve", name, "--port", &setting.port.to_string()]);
        command.args(["--workers", &setting.workers.to_string()]);
        if let Some(megabytes) = setting.cache_megabytes {
            command.args(["--cache-megabytes", &megabytes.to_string()]);
            // Many OS threads read the files. With glibc's default number of arenas, hyper exceeds
            // a gigabyte.
            command.env("MALLOC_ARENA_MAX", "2");
        }
        command.arg(setting.site);
        Ok(command)
    }
}

fn floor(peers: &Peers, setting: &Setting<'_>) -> Result<Command, String> {
    let program = peers.scratch.join("floor-web");
    if !program.exists() {
        let source = peers.scratch.join("web.c");
        write(&source, include_str!("../../floor/web.c"))?;
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
        compiler
            .args(["-O2", "-pthread", "-o"])
            .arg(&program)
            .arg(&source);
        let status = compiler.status();
        let status = status.map_err(|error| format!("cannot run the C compiler `cc`: {error}"))?;
        if !status.success() {
            return Err(format!("the C compiler failed ({status})"));
        }
    }
    let mut command = Command::new(program);
    command
        .args([setting.port.to_string(), setting.workers.to_string()])
        .arg(setting.site);
    Ok(command)
}

fn tussah(peers: &Peers, setting: &Setting<'_>) -> Result<Command, String> {
    if !peers.tussah.exists() {
        let hint = "cargo build --release -p tussah-services";
        return Err(format!(
            "{} does not exist; run {hint}, or give --tussah PATH",
            peers.tussah.display()
        ));
    }
    let mut command = Command::new(&peers.tussah);
    command.arg("web").arg(setting.site);
    command.args(["--listen", &format!("127.0.0.1:{}", setting.port)]);
    command.args(["--workers", &setting.workers.to_string()]);
    let megabytes = setting.cache_megabytes.unwrap_or(ALL_MEGABYTES);
    command.args(["--cache-size", &format!("{megabytes}MB")]);
    command.args(["--limit-connections", &CONNECTIONS_MAX.to_string()]);
    command.args(["--timeout-idle", "1h", "--timeout-head", "1h"]);
    if let Some((address, connections)) = setting.fastcgi {
        let file = setting.scratch.join("tussah.toml");
        let table = format!("[[fastcgi]]\naddress = \"{address}\"\nconnections = {connections}\n");
        write(&file, &table)?;
        command.arg("--config").arg(file);
    }
    command.args(&peers.tussah_flags);
    Ok(command)
}

fn nginx(setting: &Setting<'_>, keeps: bool) -> Result<Command, String> {
    let file = setting.scratch.join("nginx.conf");
    write(&file, &setting.nginx(keeps))?;
    let mut command = installed("nginx", "nginx")?;
    command
        .arg("-c")
        .arg(file)
        .arg("-p")
        .arg(setting.scratch)
        .args(["-e", "stderr"]);
    Ok(command)
}

fn lighttpd(_: &Peers, setting: &Setting<'_>) -> Result<Command, String> {
    let file = setting.scratch.join("lighttpd.conf");
    write(&file, &setting.lighttpd())?;
    let mut command = installed("lighttpd", "lighttpd")?;
    command.args(["-D", "-f"]).arg(file);
    Ok(command)
}

fn h2o(_: &Peers, setting: &Setting<'_>) -> Result<Command, String> {
    let file = setting.scratch.join("h2o.conf");
    write(&file, &setting.h2o())?;
    let mut command = installed("h2o", "h2o")?;
    command.arg("-c").arg(file);
    Ok(command)
}

fn apache(_: &Peers, setting: &Setting<'_>) -> Result<Command, String> {
    let mut command = installed("apache2", "apache2")?;
    let file = setting.scratch.join("apache.conf");
    write(
        &file,
        &setting.apache(Path::new("/usr/lib/apache2/modules")),
    )?;
    command.args(["-D", "FOREGROUND", "-f"]).arg(file);
    Ok(command)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the command for a program that Debian provides in the package `package`.
///
/// # Errors
///
/// Returns an error if the program is not installed; the message states what to do about it.
pub fn installed(program: &str, package: &str) -> Result<Command, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The folders of server programs, which are not on every user's path.
    let beside = OsStr::new("/usr/sbin:/usr/local/sbin");
    let folders = std::env::split_paths(&path).chain(std::env::split_paths(beside));
    let found = folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file());
    let hint =
        || format!("{program} is not installed; run scripts/peers, or apt-get install {package}");
    found.map(Command::new).ok_or_else(hint)
}
