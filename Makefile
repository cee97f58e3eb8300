# make demo, make test: everything they need is installed if it is missing (Debian 12, Go 1.21 or later; root or sudo).
# CONTRIBUTING.md says what each target does and how long it takes.

GO       ?= go
SUDO     := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
COMMIT   := $(shell git describe --always --dirty --exclude '*' 2>/dev/null)
PACKAGES := build-essential pkg-config libnorm-dev libsodium-dev iproute2 iputils-ping e2fsprogs ethtool tcpdump tshark nftables procps \
            openjdk-17-jdk-headless maven brotli zstd xz-utils chromium-headless-shell fonts-dejavu-core \
            man-db mandoc zsh fish systemd openssh-client prosody lua-unbound ejabberd

# Tests make network namespaces and mounts: the test programs run as root, what compiles them does not.
ROOT := $(if $(SUDO),-exec "sudo -E env PATH=$(PATH)")

.NOTPARALLEL:
.PHONY: build deps peers tak-peers xmpp-peers tak-hour demo docs packages release test test-long check vuln generate bench gobench fuzz sizes measure transports clean
.DEFAULT_GOAL := build

build:
	@mkdir -p bin
	@scripts/progress "building bin/gateway and bin/gateway-lab" $(GO) build -v -ldflags "-X aldis/internal/operator/cli.commit=$(COMMIT)" -o bin/ ./cmd/gateway ./cmd/gateway-lab

# Installs only what is missing, and says so.
deps:
	@minor=$$(GOTOOLCHAIN=local $(GO) version 2>/dev/null | sed -n 's/.* go1\.\([0-9]*\).*/\1/p'); [ "$${minor:-0}" -ge 21 ] || \
	{ echo "Go is missing or too old: install Go 1.21 or later and put it on the PATH"; exit 1; }
	@missing=; for p in $(PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "installing$$missing"; \
	  scripts/progress "asking for Debian's packages" $(SUDO) apt-get update && \
	  scripts/progress "installing Debian's packages" $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends install $$missing; fi

# .deb and .rpm for amd64 and arm64, in bin/packages. The compiler of the other architecture is Debian's.
packages: PACKAGES := build-essential pkg-config libnorm-dev libsodium-dev git gcc-aarch64-linux-gnu libc6-dev-arm64-cross
packages: deps
	@GO="$(GO)" scripts/packages

# make release KEY=FILE: the packages, bills of materials, symbols, and signed checksums of all, in bin/release (scripts/release).
release: PACKAGES := build-essential pkg-config libnorm-dev libsodium-dev git gcc-aarch64-linux-gnu libc6-dev-arm64-cross openssh-client
release: deps
	@GO="$(GO)" scripts/release "$(KEY)"

peers: deps
	@$(MAKE) -s -C field-tests/peers

# taky and pytak, for tests alone: the demonstration needs no Python.
tak-peers: PACKAGES := python3-venv
tak-peers: deps
	@$(MAKE) -s -C field-tests/tak

# slixmpp, likewise.
xmpp-peers: PACKAGES := python3-venv $(if $(shell command -v npm),,nodejs npm)
xmpp-peers: deps
	@$(MAKE) -s -C field-tests/xmpp

# The acceptance of TAK with real processes on iridium-dialup, unaided TCP beside it: an hour of the real clock, mostly idle.
tak-hour: deps build tak-peers
	@$(GO) test -count 1 -tags long -timeout 2h -v -run TestTAKForAnHour $(ROOT) ./internal/lab/field

# With gateways and without, at the same time; a scoreboard, and the same as a page.
demo: deps build peers
	$(SUDO) bin/gateway lab blue-game --unaided --html build/demo.html

test: deps build peers tak-peers xmpp-peers
	@GO="$(GO)" scripts/test

# The long lab runs on top: half an hour and more. It builds the packages and puts them on a Debian 12 of its own.
test-long: PACKAGES += git gcc-aarch64-linux-gnu libc6-dev-arm64-cross lintian rpm mmdebstrap systemd-container podman runc
test-long: deps build peers tak-peers xmpp-peers
	@GO="$(GO)" scripts/test long

check: deps
	@GO="$(GO)" scripts/check

# make itself ends with 2 when scripts/vuln does not end with 0; scripts/vuln says what its codes mean.
vuln: deps
	@GO="$(GO)" scripts/vuln

# What Protocol Buffers make of *.proto, with the generator of the version in go.mod. Nothing else needs protoc.
generate: PACKAGES += protobuf-compiler
generate: deps
	@bin=$$(mktemp -d) && trap 'rm -rf $$bin' EXIT && GOBIN=$$bin $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go && \
	PATH=$$bin:$$PATH $(GO) generate ./...

# docs/bench.md, docs/bench.csv and docs/bench.html: under two hours; BENCH=--quick, some 20 minutes. It fails where something
# was lost, or is worse than docs/bench.csv says by more than both spreads.
bench: PACKAGES += nats-server git autoconf automake libtool libapr1-dev libaprutil1-dev libaprutil1-dbd-sqlite3 libssl-dev libxml2-dev libsqlite3-dev zlib1g-dev
bench: deps build peers
	@$(MAKE) -s -C field-tests/jxtac || echo "JXTA-C is not built: its rows will say so"
	$(SUDO) nice -n -15 bin/gateway bench --most 1h55m $(BENCH) --write docs

# The Go benchmarks of all packages.
gobench: deps
	@$(GO) test -run '^$$' -bench . -benchmem $(ROOT) ./...

# Every fuzz test of the module, FUZZTIME each (10s).
fuzz: deps
	@GO="$(GO)" scripts/fuzz all

# docs/sizes.md, docs/strangers.md and docs/measured.md, never by hand. The second plays every run that has no result yet: about an hour.
sizes: deps
	@nice $(GO) test -count 1 -run 'TestTable$$|TestStrangersTable$$' ./internal/link/compact -args -write
	@nice $(GO) test -count 1 -run 'TestKinds$$' ./internal/adapters/tak/code -args -write

measure: deps build peers
	$(SUDO) $(GO) run ./field-tests/road

# The documentation as a site, without a server or the network: build/docs/index.html. The pictures are those of the tests
# of the page, the session is played with the gateway that was built.
docs: deps build
	@mkdir -p build/pictures
	@scripts/progress "taking pictures of the page" env ALDIS_SCREENSHOTS=$(CURDIR)/build/pictures $(GO) test -count 1 -run 'TestPageInEveryWindow|TestMessagesOnThePage' ./internal/operator/control
	@scripts/progress "playing the session of the tour" $(GO) run ./ops/site -gateway bin/gateway -shots build/pictures -o build/docs
	@echo "file://$(CURDIR)/build/docs/index.html"

# docs/transports.md: P_Mul beside UFTP (Debian package uftp), NORM and TCP; half an hour for what has no result yet.
transports: deps build
	$(SUDO) $(GO) run ./field-tests/pmul

clean:
	@rm -rf bin
	@$(MAKE) -s -C field-tests/peers clean
