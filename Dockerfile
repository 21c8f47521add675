# syntax=docker/dockerfile:1

# The dependencies are compiled in a layer of their own, from the manifests and
# empty sources: they change seldom, and a layer outlives a cache mount.
FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
# Optimised as a whole: a tenth more calls a second and a quarter less to pull,
# for some minutes more here.
ENV CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
COPY Cargo.toml Cargo.lock ./
# The manifest names them; nothing of them is built.
COPY benches benches
RUN mkdir src \
    && echo 'fn main() {}' > src/main.rs \
    && touch src/lib.rs \
    && cargo build --release --locked --bin larder \
    && rm -r src
COPY src src
COPY migrations migrations
# Cargo goes by time, and what was copied may be older than what was built above.
RUN touch src/main.rs src/lib.rs \
    && cargo build --release --locked --bin larder \
    && strip target/release/larder \
    && mkdir /data

FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="Larder" \
      org.opencontainers.image.description="An MCP server that keeps large tool results out of the model's context" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /src/target/release/larder /usr/local/bin/larder
# A volume takes over the owner of the directory it covers: the image's user, nonroot.
COPY --from=build --chown=65532:65532 /data /var/lib/larder
# Whoever is asked for in the same environment: the server and the probe below.
# Larder refuses this address until it is told how to authenticate: an image
# opens nothing by accident.
ENV LARDER_SERVER__LISTEN=0.0.0.0:8000
EXPOSE 8000
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=5s --retries=3 \
    CMD ["/usr/local/bin/larder", "health"]
ENTRYPOINT ["/usr/local/bin/larder"]
CMD ["serve"]
