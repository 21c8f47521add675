# syntax=docker/dockerfile:1

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY benches benches
COPY migrations migrations
# What is in a cache mount is in no layer, so the binary is copied out of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin larder \
    && cp target/release/larder /usr/local/bin/larder \
    && mkdir /data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /usr/local/bin/larder /usr/local/bin/larder
# A volume takes over the owner of the directory it covers: the image's user, nonroot.
COPY --from=build --chown=65532:65532 /data /var/lib/larder
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/larder"]
# Larder refuses this address until it is told how to authenticate: an image opens nothing by accident.
CMD ["serve", "--listen", "0.0.0.0:8000"]
