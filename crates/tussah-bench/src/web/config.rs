//! Configurations of the peer servers, as an expert on each would write them.
//!
//! None of them has an access log. All have keep-alive without a limit on requests and with an idle
//! timeout of an hour, and TCP_NODELAY for small responses.

use std::net::SocketAddr;
use std::path::Path;

/// Bound, in connections: more than any scenario opens.
pub const CONNECTIONS_MAX: usize = 16_384;

/// The parameters of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The folder of the served files.
    pub site: &'a Path,
    /// A folder for the server's own files.
    pub scratch: &'a Path,
    /// The port of the loopback to listen on.
    pub port: u16,
    /// The number of processes or OS threads that serve.
    pub workers: usize,
    /// The bound on the file cache; `None` lets a server keep the whole site in memory.
    pub cache_megabytes: Option<usize>,
    /// True if the site is one large file, which is best sent by `sendfile`.
    pub is_large: bool,
    /// The address of a FastCGI application for `.php`, and its number of processes.
    pub fastcgi: Option<(SocketAddr, usize)>,
}

impl Setting<'_> {
    /// Returns the configuration of nginx. Without sendfile, a small file takes one `pread` and one
    /// `writev` with the header, which is cheapest. The large files of the set also fit into the
    /// output buffers. One large file alone is sent by `sendfile`. With a bounded cache, its thread
    /// pool reads the files. If `keeps` is true, it keeps its connections to FastCGI.
    pub fn nginx(&self, keeps: bool) -> String {
        let Setting { port, workers, .. } = self;
        let (site, scratch) = (self.site.display(), self.scratch.display());
        // The workers of a server started by root run as another user, who may not have access to
        // the files.
        let user = match rustix::process::getuid().is_root() {
            true => "user root;",
            false => "",
        };
        let read = match self.cache_megabytes {
            None if self.is_large => "sendfile on; tcp_nopush on;",
            None => "sendfile off; output_buffers 2 1m;",
            Some(_) => "sendfile on; aio threads; sendfile_max_chunk 512k;",
        };
        let (upstream, php) = match self.fastcgi {
            None => (String::new(), String::new()),
            Some((address, _)) if !keeps => (
                format!("upstream php {{ server {address}; }}"),
                "location ~ \\.php$ { include /etc/nginx/fastcgi.conf; fastcgi_pass php; }"
                    .to_owned(),
            ),
            Some((address, kept)) => (
                format!(
                    "upstream php {{ server {address}; keepalive {kept}; keepalive_requests 1000000000; }}"
                ),
                "location ~ \\.php$ { include /etc/nginx/fastcgi.conf; fastcgi_pass php; \
                 fastcgi_keep_conn on; }"
                    .to_owned(),
            ),
        };
        let reuseport = if *workers > 1 { " reuseport" } else { "" };
        format!(
            "daemon off; {user} worker_processes {workers}; worker_rlimit_nofile 20000;
pid {scratch}/nginx.pid; error_log {scratch}/nginx.log crit;
events {{ worker_connections {CONNECTIONS_MAX}; use epoll; multi_accept on; }}
http {{
    access_log off;
    client_body_temp_path {scratch}/body; proxy_temp_path {scratch}/proxy; fastcgi_temp_path {scratch}/fastcgi;
    uwsgi_temp_path {scratch}/uwsgi; scgi_temp_path {scratch}/scgi;
    {read} tcp_nodelay on;
    keepalive_timeout 1h; keepalive_requests 1000000000; client_header_timeout 1h; send_timeout 1h;
    open_file_cache max=20000 inactive=1h; open_file_cache_valid 1m; open_file_cache_min_uses 1;
    {upstream}
    server {{ listen 127.0.0.1:{port} backlog=4096{reuseport}; root {site}; {php} }}
}}
"
        )
    }

    /// Returns the configuration of lighttpd, with its cache of file metadata kept up to date by
    /// inotify.
    pub fn lighttpd(&self) -> String {
        let Setting { port, workers, .. } = self;
        let (site, scratch) = (self.site.display(), self.scratch.display());
        // A single worker is the process itself; several are its children.
        let workers = if *workers > 1 { *workers } else { 0 };
        format!(
            "server.bind = \"127.0.0.1\"
server.port = {port}
server.document-root = \"{site}\"
server.errorlog = \"{scratch}/lighttpd.log\"
server.pid-file = \"{scratch}/lighttpd.pid\"
server.max-worker = {workers}
server.max-fds = 20000
server.max-connections = {CONNECTIONS_MAX}
server.listen-backlog = 4096
server.event-handler = \"linux-sysepoll\"
server.stat-cache-engine = \"inotify\"
server.max-keep-alive-requests = {LIGHTTPD_REQUESTS_MAX}
server.max-keep-alive-idle = 3600
server.max-read-idle = 3600
server.max-write-idle = 3600
mimetype.assign = ( \"\" => \"application/octet-stream\" )
"
        )
    }

    /// Returns the configuration of h2o, with a thread for each worker.
    pub fn h2o(&self) -> String {
        let Setting { port, workers, .. } = self;
        let (site, scratch) = (self.site.display(), self.scratch.display());
        let user = match rustix::process::getuid().is_root() {
            true => "user: root\n",
            false => "",
        };
        format!(
            "{user}num-threads: {workers}
max-connections: {CONNECTIONS_MAX}
http1-request-timeout: 3600
listen:
  host: 127.0.0.1
  port: {port}
pid-file: {scratch}/h2o.pid
error-log: {scratch}/h2o.log
hosts:
  default:
    paths:
      \"/\":
        file.dir: {site}
"
        )
    }

    /// Returns the configuration of Apache with the event MPM; `modules` is the folder of its
    /// modules. There are more threads than clients: when all are busy, Apache closes kept
    /// connections.
    pub fn apache(&self, modules: &Path) -> String {
        let Setting { port, workers, .. } = self;
        let (site, scratch) = (self.site.display(), self.scratch.display());
        let modules = modules.display();
        let (user, threads) = ("User www-data\nGroup www-data", 128);
        let php = match self.fastcgi {
            None => String::new(),
            // Without kept connections, which is the default: php-fpm leaves Nagle's algorithm on,
            // so each page over a kept connection takes 40 ms.
            Some((address, _)) => format!(
                "LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_fcgi_module {modules}/mod_proxy_fcgi.so
EnableSendfile On
<FilesMatch \"\\.php$\">
    SetHandler \"proxy:fcgi://{address}/\"
</FilesMatch>
"
            ),
        };
        format!(
            "LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
ServerName localhost
Listen 127.0.0.1:{port}
ListenBacklog 4096
DocumentRoot {site}
{user}
PidFile {scratch}/apache.pid
ErrorLog {scratch}/apache.log
LogLevel crit
DefaultRuntimeDir {scratch}
Mutex file:{scratch} default
ServerLimit {workers}
StartServers {workers}
ThreadLimit {threads}
ThreadsPerChild {threads}
MinSpareThreads {threads}
MaxRequestWorkers {all}
AsyncRequestWorkerFactor 256
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 3600
Timeout 3600
<Directory {site}>
    Require all granted
    AllowOverride None
    Options FollowSymLinks
</Directory>
{php}",
            all = workers * threads
        )
    }
}

/// Bound, in requests: lighttpd counts the requests of a connection in 16 bits and closes the
/// connection at this number. The clients connect again.
const LIGHTTPD_REQUESTS_MAX: u32 = 65_535;
