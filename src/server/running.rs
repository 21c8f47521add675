//! Ways to run a server. `Server::run`, with a command line, is in `cli`.

use std::{io, process::ExitCode};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use super::{Close, Opened, Server, ServerError};
use crate::{app::App, shutdown};

impl<S: Send + Sync + 'static> Server<S> {
    /// The endpoint as a router of axum, to be mounted in another one. It holds the server:
    /// when its last copy is dropped, the server ends.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), larder::server::ServerError> {
    /// let mcp = larder::server("mounted").router().await?;
    /// let router: axum::Router = axum::Router::new().merge(mcp);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The state, the definition or the settings.
    pub async fn router(self) -> Result<larder_server::http::Router, ServerError> {
        let (app, close) = self.app().await?;
        Ok(app.into_router(close))
    }

    /// Serves on a bound listener until the process gets a signal to stop.
    ///
    /// # Errors
    /// As [`Server::serve_until`].
    pub async fn serve(self, listener: TcpListener) -> Result<(), ServerError> {
        let stop = shutdown::stop_signal()?;
        self.serve_until(listener, stop).await
    }

    /// Serves on a bound listener until `stop` resolves.
    ///
    /// # Errors
    /// The state, the definition or the settings; or the listener fails.
    pub async fn serve_until(
        mut self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        // The address of the listener replaces the configured address, so that it is checked.
        self.config.server.listen = listener.local_addr()?;

        // The boxes keep the caller's future hardly larger than the server's settings.
        let (app, close) = Box::pin(self.app()).await?;
        let served = Box::pin(app.serve(listener, stop)).await;

        close.await;
        served?;
        Ok(())
    }

    /// Serves one client on standard input and output, until the input ends or the process
    /// gets a signal to stop: a `main` for servers that hosts start.
    pub fn run_stdio(self) -> ExitCode {
        larder_oauth::install_crypto();

        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return fail(&error.into()),
        };

        let served = runtime.block_on(async {
            let stop = shutdown::stop_signal()?;
            let (app, close) = self.app().await?;
            let served = app.serve_stdio(stop).await;
            close.await;
            served.map_err(ServerError::from)
        });

        // Does not wait for the thread that reads standard input, which may block.
        runtime.shutdown_background();

        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        }
    }

    /// Starts the server.
    pub(crate) async fn start(self) -> Result<Running, ServerError> {
        let (app, close) = self.app().await?;
        Ok(Running { app, close })
    }

    /// The server, and what to run when it has ended.
    async fn app(self) -> Result<(App, Close), ServerError> {
        let config = self.config.clone();
        let Opened { registry, backend, close } = self.open().await.map_err(ServerError::State)?;

        let app = match registry {
            Ok(registry) => {
                App::open_in(registry, config, backend).await.map_err(ServerError::from)
            }
            Err(error) => Err(error.into()),
        };

        match app {
            Ok(app) => Ok((app, close)),
            Err(error) => {
                close.await;
                Err(error)
            }
        }
    }
}

/// A server that has started, with what to run when it has ended.
pub(crate) struct Running {
    app: App,
    close: Close,
}

impl Running {
    /// Serves one client, until the input ends.
    pub(crate) async fn serve_io(
        self,
        input: impl AsyncRead + Unpin + Send,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let served = self.app.serve_io(input, output, std::future::pending()).await;
        self.close.await;
        served
    }
}

fn fail(error: &ServerError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_future_of_a_server_is_small() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let server = crate::server("small");
        let size = size_of_val(&server);

        let serving = server.serve_until(listener, std::future::pending());
        assert!(size_of_val(&serving) < 3 * size + 1024, "{} of {size}", size_of_val(&serving));
    }
}
