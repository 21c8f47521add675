# syntax=docker/dockerfile:1

# Dependencies are compiled in a separate layer from the manifests and empty
# sources: they change rarely, and a layer outlives a cache mount.
FROM rust:1.95.0-slim-bookworm AS build
# It writes the list of dependencies into the binary, where scanners find it.
ARG CARGO_AUDITABLE=0.7.7
RUN cargo install --locked --debug cargo-auditable@$CARGO_AUDITABLE
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
# The parts below the server.
COPY migrations migrations
COPY crates crates
# The manifest names the benches; none is built.
COPY benches benches
RUN mkdir src \
    && echo 'fn main() {}' > src/main.rs \
    && touch src/lib.rs \
    && cargo auditable build --profile dist --locked --bin larder \
    && rm -r src
COPY src src
# Cargo compares modification times, and the copied files may be older than the
# build above.
RUN touch src/main.rs src/lib.rs \
    && cargo auditable build --profile dist --locked --bin larder \
    && strip target/dist/larder \
    && mkdir -m 700 /data

FROM gcr.io/distroless/cc-debian12:nonroot
# make image gives them.
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="Larder" \
      org.opencontainers.image.description="An MCP server that keeps large tool results out of the model's context" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian12:nonroot"
COPY --from=build /src/target/dist/larder /usr/local/bin/larder
# A volume takes the owner of the directory that it covers: nonroot.
COPY --from=build --chown=65532:65532 /data /var/lib/larder
# For the server and for the health check below. Larder refuses this address until
# authentication is configured or waived, so the image exposes nothing by accident.
ENV LARDER_SERVER__LISTEN=0.0.0.0:8000
EXPOSE 8000
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=5s --retries=3 \
    CMD ["/usr/local/bin/larder", "health"]
ENTRYPOINT ["/usr/local/bin/larder"]
CMD ["serve"]
