//! Real proxies with the configuration of `deploy/`, in front of several instances.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{eventually, free_port};

const NGINX: &str = include_str!("../../../deploy/nginx/larder.conf");
const CADDY: &str = include_str!("../../../deploy/caddy/Caddyfile");

/// A proxy on a free port, killed when it is dropped.
pub(crate) struct Proxy {
    child: Child,
    /// The signal that ends it at once.
    end: &'static str,
    folder: tempfile::TempDir,
    /// The URL of the MCP endpoint behind it.
    pub(crate) url: String,
}

impl Proxy {
    /// nginx in front of the instances at these addresses, without its certificate.
    pub(crate) async fn nginx(instances: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, path) = (free_port(), folder.path().to_str().unwrap().to_owned());
        let servers: Vec<_> = instances.iter().map(|at| format!("{at} max_fails=0;")).collect();
        let sample = replaced(NGINX, "127.0.0.1:8000 max_fails=0;", &servers.join("\nserver "));
        let sample =
            replaced(&sample, "listen 443 ssl http2;", &format!("listen 127.0.0.1:{port};"));
        let sample: Vec<_> =
            sample.lines().filter(|line| !line.trim_start().starts_with("ssl_")).collect();
        let folders: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {path}/{kind};\n"))
            .concat();
        let config = format!(
            "daemon off;\npid {path}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n\
             access_log off;\n{folders}{}\n}}\n",
            sample.join("\n")
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        let mut command = Command::new(program("nginx"));
        command.args(["-e", "stderr", "-p", &path, "-c"]).arg(file);
        // Its workers end with it.
        Self::start(command, "-TERM", folder, port).await
    }

    /// Caddy in front of the instances at these addresses, without a certificate. It checks them
    /// at this interval.
    pub(crate) async fn caddy(instances: &[&str], interval: &str) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let sample = replaced(CADDY, "reverse_proxy larder:8000", &{
            format!("reverse_proxy {}", instances.join(" "))
        });
        let sample = replaced(&sample, "skip_install_trust", "skip_install_trust\n\tadmin off");
        let interval = format!("health_interval {interval}");
        let sample = replaced(&sample, "health_interval 5s", &interval);
        let address = format!("http://127.0.0.1:{port}");
        let config = replaced(&sample, "{$LARDER_HOST:localhost}", &address);
        let file = folder.path().join("Caddyfile");
        fs::write(&file, config).unwrap();
        let mut command = Command::new(program("caddy"));
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
        for home in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
            command.env(home, folder.path());
        }
        // By -TERM it would wait for open streams.
        Self::start(command, "-KILL", folder, port).await
    }

    async fn start(
        mut command: Command,
        end: &'static str,
        folder: tempfile::TempDir,
        port: u16,
    ) -> Self {
        let log = fs::File::create(folder.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("{command:?}: {error}. make nginx installs nginx, make proxies Caddy");
        });
        let url = format!("http://127.0.0.1:{port}/mcp");
        let proxy = Self { child, end, folder, url };
        eventually("the proxy to listen", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        proxy
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args([self.end, &id]).status();
        let _ = self.child.wait();
    }
}

/// The path of a program. Debian installs servers outside of the path of users.
fn program(name: &str) -> PathBuf {
    let path = env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/usr/local/sbin"]);
    let found = folders.map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| name.into())
}

/// The sample with other text at one place, which it must have.
fn replaced(sample: &str, from: &str, to: &str) -> String {
    assert_eq!(sample.matches(from).count(), 1, "{from:?} in:\n{sample}");
    sample.replace(from, to)
}
