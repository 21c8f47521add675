# `make help` lists what there is. Arguments for a program: `make conformance ARGS=--help`.

CARGO_DENY := 0.20.2
# As in the Dockerfile.
CARGO_AUDITABLE := 0.7.7
# For make image.
IMAGE := larder
PLATFORMS := linux/amd64,linux/arm64
VERSION = $(shell sed -n '0,/^version/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# For make sbom.
BINARY := $(or $(CARGO_TARGET_DIR),target)/dist/larder
CONFORMANCE := tests/conformance
OIDC := tests/oidc
UPSTREAMS := tests/upstreams
CONTENT := tests/content
WEB := web
BROWSER := tests/browser
INTEROP := tests/interop
QUESTIONS := tests/questions
S3_VENV := $(or $(CARGO_TARGET_DIR),target)/s3/venv
INTEROP_VENV := $(or $(CARGO_TARGET_DIR),target)/interop/venv
MANIFESTS_VENV := $(abspath $(or $(CARGO_TARGET_DIR),target)/manifests/venv)
QUESTIONS_PACKAGES := $(abspath $(or $(CARGO_TARGET_DIR),target)/questions/packages)
BENCH := bench
BENCH_TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target)/bench)
BENCH_VENV := $(BENCH_TARGET)/venv
BENCH_CONTEXT_VENVS := $(addsuffix -venv/requirements.txt,$(addprefix $(BENCH_TARGET)/,context context-sqlite context-fastmcp))

# A program, and the package that it comes in if it is missing.
debian-package = @command -v $(1) >/dev/null || { \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$sudo apt-get update && $$sudo apt-get install -y --no-install-recommends $(2); \
	}

.DEFAULT_GOAL := help
.PHONY: build dist cargo-auditable sbom test test-large browser-test web web-check chromium new-project redis-server jq s3-server lint fmt-check clippy doc features docs-reference deny demo manifests kubernetes compose-secrets fuzz conformance interop questions proxies windows container image bench bench-context bench-store ripgrep sqlite3 nginx caddy help

build: ## Build the release binary
	cargo build --release --locked

dist: cargo-auditable ## Build the binary that is released: fully optimised, in several times the time, with the list of its dependencies
	cargo auditable build --profile dist --locked --bin larder

cargo-auditable: ## Install cargo-auditable, which writes the list of dependencies into a binary
	@cargo install --list | grep -qxF "cargo-auditable v$(CARGO_AUDITABLE):" \
		|| cargo install --locked --debug cargo-auditable@$(CARGO_AUDITABLE)

sbom: ## Print the dependencies in a binary as JSON: BINARY=target/dist/larder
	@objcopy --dump-section .dep-v0=/dev/stdout $(BINARY) /dev/null | python3 -c \
		'import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()) + b"\n")'

test: redis-server jq s3-server nginx $(OIDC)/node_modules/.package-lock.json $(UPSTREAMS)/node_modules/.package-lock.json $(CONTENT)/node_modules/.package-lock.json ## Run every test
	tests/run --workspace $(ARGS)

test-large: redis-server s3-server ## Transfer a gibibyte in every backend: the memory of the server does not grow (Linux; takes minutes)
	cargo test --locked --workspace --test it -- --ignored --test-threads 1 content::large::

browser-test: chromium $(CONTENT)/node_modules/.package-lock.json $(BROWSER)/node_modules/.package-lock.json ## Open the viewer, the console, and links to stored content in Chromium; prints how long that took (ARGS=--release for numbers that mean something)
	tests/run --workspace --test it $(ARGS) -- --ignored --show-output browser::

chromium: ## Install Chromium if it is missing
	$(call debian-package,chromium,chromium)

web: $(WEB)/node_modules/.package-lock.json ## Build the pages of web/ into crates/server/src/apps/built and crates/server/src/http/console/built, which are committed
	cd $(WEB) && npm run --silent check && node build.mjs

web-check: $(WEB)/node_modules/.package-lock.json ## Check that the committed pages are what web/ builds
	cd $(WEB) && npm run --silent check
	built=$$(mktemp -d) && node $(WEB)/build.mjs $$built && diff -r $$built/apps/built crates/server/src/apps/built \
		&& diff -r $$built/http/console/built crates/server/src/http/console/built; \
		differs=$$?; rm -r $$built; exit $$differs

new-project: ## Build and test what `larder new` writes, with the snippets of the guides
	cargo build --locked --bin larder
	tests/new-project/run $(or $(CARGO_TARGET_DIR),target)/debug/larder

redis-server: ## Install Redis if it is missing: tests start servers of their own
	$(call debian-package,redis-server,redis-server)

jq: ## Install jq if it is missing: queries are compared with it
	$(call debian-package,jq,jq)

s3-server: $(S3_VENV)/requirements.txt ## Install the S3-compatible server (moto) that tests start

# The copy says what is installed, and that all of it is.
$(S3_VENV)/requirements.txt: tests/s3/requirements.txt
	python3 -m venv --clear $(S3_VENV)
	$(S3_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	cp $< $@

# Helm keeps releases in memory, and installs them into a server that only records.
MANIFESTS := HELM_DRIVER=memory HELM_SDKPY=$(MANIFESTS_VENV)/helm $(MANIFESTS_VENV)/bin/python -B -m unittest

manifests: $(MANIFESTS_VENV)/requirements.txt ## Install the chart with Helm, and check it, deploy/kubernetes and docker-compose.yml
	cd tests/manifests && $(MANIFESTS) chart compose kustomize

compose-secrets: ## Write random passwords for docker-compose.yml into .env, once
	deploy/compose-secrets

kubernetes: $(MANIFESTS_VENV)/requirements.txt ## Write deploy/kubernetes anew from the chart
	cd tests/manifests && UPDATE=1 $(MANIFESTS) kustomize

# The copy says what is installed, and that all of it is.
# Of Helm's package only its library is used, which needs no certain Python.
$(MANIFESTS_VENV)/requirements.txt: tests/manifests/requirements.txt tests/manifests/helm.txt
	python3 -m venv --clear $(MANIFESTS_VENV)
	$(MANIFESTS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	$(MANIFESTS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--ignore-requires-python --target $(MANIFESTS_VENV)/helm --requirement tests/manifests/helm.txt
	cp $< $@

fuzz: ## Build the fuzz targets and run each for FUZZ_SECONDS (60)
	fuzz/run $(ARGS)

lint: fmt-check clippy doc ## Check formatting, lints and documentation

fmt-check: ## Check formatting alone
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check

clippy: ## Check lints alone
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

features: ## Check that the crate builds with few features
	@for features in "" macros query testing azure,gcs; do \
		echo "cargo clippy --lib --no-default-features --features '$$features'"; \
		cargo clippy --quiet --locked --lib --no-default-features --features "$$features" -- -D warnings \
			|| exit 1; \
	done

doc: ## Check documentation alone
	@# With all features, as `make clippy` has checked the dependencies.
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked

docs-reference: ## Write the comments of larder.example.toml and the generated part of docs/configuration.md
	UPDATE_DOCS=1 cargo test --locked --test it docs::

# Installed unoptimised: that takes a quarter of the time to build, and it checks in seconds all the same.
deny: ## Check licences, bans, sources and advisories of the dependencies
	@cargo deny --version 2>/dev/null | grep -qxF "cargo-deny $(CARGO_DENY)" \
		|| cargo install --locked --debug cargo-deny@$(CARGO_DENY)
	cargo deny --locked check --hide-inclusion-graph bans licenses sources
	@if timeout 120 cargo deny fetch db; then \
		cargo deny --locked check --hide-inclusion-graph advisories; \
	else \
		echo "advisories SKIPPED: their database could not be fetched (see above)"; \
	fi

demo: ## Show Larder at work on a large text
	@cargo run --release --quiet --locked -- demo $(ARGS)

conformance: $(CONFORMANCE)/node_modules/.package-lock.json ## Run the official MCP conformance suites
	$(CONFORMANCE)/run $(ARGS)
	$(if $(ARGS),,$(CONFORMANCE)/run --through)

$(CONFORMANCE)/node_modules/.package-lock.json: $(CONFORMANCE)/package.json $(CONFORMANCE)/package-lock.json
	cd $(CONFORMANCE) && npm ci

$(OIDC)/node_modules/.package-lock.json: $(OIDC)/package.json $(OIDC)/package-lock.json
	cd $(OIDC) && npm ci

$(UPSTREAMS)/node_modules/.package-lock.json: $(UPSTREAMS)/package.json $(UPSTREAMS)/package-lock.json
	cd $(UPSTREAMS) && npm ci

$(CONTENT)/node_modules/.package-lock.json: $(CONTENT)/package.json $(CONTENT)/package-lock.json
	cd $(CONTENT) && npm ci

$(BROWSER)/node_modules/.package-lock.json: $(BROWSER)/package.json $(BROWSER)/package-lock.json
	cd $(BROWSER) && npm ci

$(WEB)/node_modules/.package-lock.json: $(WEB)/package.json $(WEB)/package-lock.json
	cd $(WEB) && npm ci

interop: redis-server $(INTEROP)/node_modules/.package-lock.json $(INTEROP_VENV)/requirements.txt $(OIDC)/node_modules/.package-lock.json $(UPSTREAMS)/node_modules/.package-lock.json ## Let the official clients tour the servers, and log in
	$(INTEROP)/run $(ARGS)
	node $(INTEROP)/logins.mjs $(or $(CARGO_TARGET_DIR),target)/debug/larder $(INTEROP_VENV)/bin/python

$(INTEROP)/node_modules/.package-lock.json: $(INTEROP)/package.json $(INTEROP)/package-lock.json
	cd $(INTEROP) && npm ci

# The copy says what is installed, and that all of it is.
$(INTEROP_VENV)/requirements.txt: $(INTEROP)/requirements.txt
	python3 -m venv --clear $(INTEROP_VENV)
	$(INTEROP_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	cp $< $@

questions: $(QUESTIONS)/node_modules/.package-lock.json $(QUESTIONS_PACKAGES)/requirements.txt ## Ask questions about real files, and compare the answers with Python's (ARGS=--verbose, or a part of a file's name)
	@# As the tests are built, so that nothing is compiled with other features.
	cargo build --locked --workspace --bin larder --example conformance
	$(QUESTIONS)/run $(ARGS)

$(QUESTIONS)/node_modules/.package-lock.json: $(QUESTIONS)/package.json $(QUESTIONS)/package-lock.json
	cd $(QUESTIONS) && npm ci --ignore-scripts

# The copy says what is downloaded, and that all of it is.
# The wheels are read as archives, so which Python and system they are built for means nothing.
$(QUESTIONS_PACKAGES)/requirements.txt: $(QUESTIONS)/requirements.txt
	rm -rf $(QUESTIONS_PACKAGES) $(QUESTIONS_PACKAGES)-venv
	python3 -m venv $(QUESTIONS_PACKAGES)-venv
	$(QUESTIONS_PACKAGES)-venv/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		--only-binary :all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
		--platform manylinux_2_28_x86_64 --platform any --dest $(QUESTIONS_PACKAGES) --requirement $<
	cp $< $@

proxies: redis-server nginx caddy ## Put nginx, Caddy and HAProxy before Larder: requests after pauses (two minutes), a rolling restart
	cargo build --locked --bin larder
	tests/proxies/run $(ARGS)
	tests/proxies/sticky
	cargo test --locked --test it -- --ignored rolling_restart::

# Debian would start it as a service.
caddy: ## Install Caddy if it is missing: tests put it before Larder
	$(call debian-package,caddy,caddy)

# The C compiler for Windows builds what crates have in C.
windows: ## Check that the binary compiles for Windows
	$(call debian-package,x86_64-w64-mingw32-gcc,gcc-mingw-w64-x86-64)
	rustup target add x86_64-pc-windows-gnu
	cargo check --locked --target x86_64-pc-windows-gnu --bin larder

container: ## Build the image and run it as it would run elsewhere (as root; takes a while)
	deploy/container-test $(ARGS)

image: ## Build the image for PLATFORMS with docker buildx; ARGS=--push publishes it
	docker buildx build --platform $(PLATFORMS) --sbom=true --provenance=mode=max \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg CREATED=$$(git log -1 --format=%cI) --build-arg SOURCE=$$(git remote get-url origin) \
		--tag $(IMAGE):$(VERSION) $(ARGS) .

bench: $(BENCH)/peers/typescript/node_modules/.package-lock.json $(BENCH_VENV)/requirements.txt nginx ## Measure Larder beside its peers
	cd $(BENCH) && CARGO_TARGET_DIR=$(BENCH_TARGET) cargo build --release --locked
	taskset --cpu-list 1 $(BENCH_TARGET)/release/larder-bench --python $(abspath $(BENCH_VENV))/bin/python --plots $(BENCH) $(ARGS)
	$(if $(ARGS),,$(MAKE) bench-store)

bench-context: $(UPSTREAMS)/node_modules/.package-lock.json $(QUESTIONS)/node_modules/.package-lock.json $(BENCH)/context/node_modules/.package-lock.json $(BENCH_CONTEXT_VENVS) chromium ## Measure the bytes of context that answers cost, by Larder and other ways (ARGS=--check, or --only and a server); needs the release build
	$(BENCH)/context/run $(ARGS)

bench-store: redis-server ripgrep jq sqlite3 ## Measure the store alone, by where resources lie
	cargo bench --locked --bench store --bench redis --bench workflow

sqlite3: ## Install SQLite's shell if it is missing: queries are measured against it
	$(call debian-package,sqlite3,sqlite3)

nginx: ## Install nginx if it is missing: content over HTTP is measured against it
	$(call debian-package,nginx,nginx-light)

ripgrep: ## Install ripgrep if it is missing: searches are measured against it
	$(call debian-package,rg,ripgrep)

$(BENCH)/peers/typescript/node_modules/.package-lock.json: $(BENCH)/peers/typescript/package.json $(BENCH)/peers/typescript/package-lock.json
	cd $(BENCH)/peers/typescript && npm ci

$(BENCH_VENV)/requirements.txt: $(BENCH)/peers/fastmcp/requirements.txt
	python3 -m venv --clear $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	cp $< $@

$(BENCH)/context/node_modules/.package-lock.json: $(BENCH)/context/package.json $(BENCH)/context/package-lock.json
	cd $(BENCH)/context && npm ci --ignore-scripts

# Each has a release of the Python SDK of its own.
$(BENCH_TARGET)/context-venv/requirements.txt: $(BENCH)/context/requirements.txt
$(BENCH_TARGET)/context-sqlite-venv/requirements.txt: $(BENCH)/context/requirements-sqlite.txt
$(BENCH_TARGET)/context-fastmcp-venv/requirements.txt: $(BENCH)/context/requirements-fastmcp.txt
$(BENCH_CONTEXT_VENVS):
	python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	cp $< $@

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
