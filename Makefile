# make demo, make test: everything they need is installed if it is missing (Debian 12, Go 1.21 or later; root or sudo).
# make build, test-long, bench, fuzz, clean; make peers builds the JXTA peers of the field tests.

GO       ?= go
SUDO     := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null)
PACKAGES := build-essential pkg-config libnorm-dev libsodium-dev iproute2 ethtool tcpdump tshark procps \
            openjdk-17-jdk-headless maven brotli p7zip-full zstd xz-utils chromium-headless-shell fonts-dejavu-core
FUZZTIME ?= 10s

# Tests make network namespaces and mounts: the test programs run as root, what compiles them does not.
ROOT := $(if $(SUDO),-exec "sudo -E env PATH=$(PATH)")
# Goroutines and locks are at home in these: they run with the race detector.
RACE := ./internal/control ./internal/daemon ./internal/journal ./internal/lan ./internal/radio
# Real processes, sockets and clocks: one after the other, with the machine to themselves.
REAL := ./cmd/... ./field-tests/... ./internal/pmul/pmulfile/... ./internal/jxtabridge/peertest/... ./internal/lab/field/... ./internal/norm/...
REST  = $(filter-out $(shell $(GO) list $(RACE) $(REAL)),$(shell $(GO) list ./...))

# What needs no run: format and vet; the borders of the house are tests of internal/borders.
CHECK = bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "not as gofmt writes it: $$bad"; false; } && \
	$(GO) vet ./... && $(GO) vet -tags long ./...

.NOTPARALLEL:
.PHONY: build deps peers demo test test-long check bench fuzz sizes measure transports clean
.DEFAULT_GOAL := build

build:
	@$(GO) build -ldflags "-X main.version=$(VERSION)" -o bin/gateway ./cmd/gateway

# Installs only what is missing, and says so.
deps:
	@missing=; for p in $(PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "installing$$missing"; log=$$(mktemp); \
	  { $(SUDO) apt-get -qq update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $$missing; } \
	  >$$log 2>&1 || { cat $$log; rm -f $$log; exit 1; }; rm -f $$log; fi
	@command -v $(GO) >/dev/null || { echo "Go is missing: install Go 1.21 or later and put it on the PATH"; exit 1; }

peers: deps
	@$(MAKE) -s -C field-tests/peers

demo: deps build peers
	$(SUDO) bin/gateway lab blue-game

# Everything is run even when something fails before; the last line says what came of it.
test: deps build peers
	@failed=; \
	{ $(CHECK); } || failed="$$failed check"; \
	$(GO) test -timeout 15m $(ROOT) $(REST) || failed="$$failed rooms"; \
	$(GO) test -timeout 15m -race $(ROOT) $(RACE) || failed="$$failed race"; \
	$(GO) test -timeout 30m -p 1 -count 1 $(ROOT) $(REAL) || failed="$$failed real"; \
	if [ -n "$$failed" ]; then echo "make test: FAILED:$$failed"; exit 1; fi; echo "make test: all passed"

# The long lab runs on top: half an hour and more.
test-long: test
	$(GO) test -timeout 4h -p 1 -count 1 -tags long $(ROOT) $(REAL)

check:
	@$(CHECK)

bench: deps
	@$(GO) test -run '^$$' -bench . -benchmem $(ROOT) ./...

# Every fuzz test for FUZZTIME each.
fuzz: deps
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	  echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$p || exit 1; done; done

# docs/sizes.md and docs/measured.md, never by hand. The second plays every run that has no result yet: about an hour.
sizes: deps
	@nice $(GO) test -count 1 -run 'TestTable$$' ./internal/link/compact -args -write

measure: deps build peers
	$(SUDO) $(GO) run ./field-tests/road

# docs/transports.md: P_Mul beside UFTP (Debian package uftp), NORM and TCP; half an hour for what has no result yet.
transports: deps build
	$(SUDO) $(GO) run ./field-tests/pmul

clean:
	@rm -rf bin
	@$(MAKE) -s -C field-tests/peers clean
