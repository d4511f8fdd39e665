# Everything that is built, tested and shown starts here. `make help` lists it.

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
BUILD    := CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)"
FUZZTIME ?= 5s
# Newest that builds with the Go version of go.mod.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
LAB      := $(GO) run ./cmd/lab

# What the node tests need: root, and systemd-nspawn or the means to install it.
CAN_RUN_NODES := $(shell [ "$$(id -u)" = 0 ] && { command -v systemd-nspawn || command -v apt-get; } >/dev/null 2>&1 && echo yes)

.DEFAULT_GOAL := help
.PHONY: help build generate lint unit fuzz node cluster test bench demo setup lab-up lab-shell lab-status lab-down image

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build both programs into bin/, static and stripped
	$(BUILD) -o bin/ ./cmd/proxyward ./cmd/proxyward-agent

generate: ## write the generated code anew
	$(GO) generate ./...

MODULES := . integration internal/crdgen

lint: ## gofmt, vet, staticcheck, shellcheck, tidy modules
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; }
	@for module in $(MODULES); do ( cd $$module && echo "lint $$module" && \
		$(GO) mod tidy -diff && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... ) || exit 1; done
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run; \
	elif [ "$$CI" = true ]; then echo "shellcheck is missing"; exit 1; \
	else echo "left out: shellcheck, which is not installed"; fi

unit: ## unit tests with the race detector; fuzz targets run their seeds
	$(GO) test -race ./...
	cd internal/crdgen && $(GO) test -race ./...

fuzz: ## every fuzz target for FUZZTIME
	@$(GO) list -f '{{.ImportPath}}' ./... | while read -r package; do \
		$(GO) test -list '^Fuzz' $$package | grep '^Fuzz' | while read -r target; do \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done || exit 1; \
	done

# A command that the tests run, and the Debian package that has it.
TOOLS   := shellcheck=shellcheck buildah=buildah curl=curl wget=wget python3=python3 java=default-jdk-headless npm=npm systemd-analyze=systemd
CLIENTS := internal/proxyenv/testdata/clients

setup: ## install what lint and the tests need on this machine, and build the node root, once
	@missing=; for tool in $(TOOLS); do command -v $${tool%=*} >/dev/null || missing="$$missing $${tool#*=}"; done; \
	python3 -c 'import requests' 2>/dev/null || missing="$$missing python3-requests"; \
	if [ -n "$$missing" ]; then echo "installing$$missing"; apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; fi
	@[ -x $(CLIENTS)/node_modules/node/bin/node ] || { echo "installing the JavaScript clients whose NO_PROXY rules are compared"; \
		cd $(CLIENTS) && npm ci --no-audit --no-fund; }
	cd integration && $(LAB) setup

node: ## tests on real nodes: systemd, containerd, squid, registries (root, Debian)
ifeq ($(CAN_RUN_NODES),yes)
	@$(MAKE) --no-print-directory setup
	cd integration && $(GO) test -race -count=1 -timeout 40m $$($(GO) list ./... | grep -v -e /cluster -e /controlplane)
else
	@if [ "$$CI" = true ]; then echo "node tests must run where CI=true; they need root and Debian"; exit 1; fi
	@echo "left out: the node tests. They need root and a Debian machine (systemd-nspawn is installed by itself)."
endif

cluster: ## tests on a real control plane and kubelets, compiled once (root, Debian)
ifeq ($(CAN_RUN_NODES),yes)
	@$(MAKE) --no-print-directory setup
	cd integration && $(GO) run ./controlplane/build
	cd integration && $(GO) test -race -count=1 -timeout 40m ./cluster/... ./controlplane/...
else
	@if [ "$$CI" = true ]; then echo "cluster tests must run where CI=true; they need root and Debian"; exit 1; fi
	@echo "left out: the cluster tests. They need root and a Debian machine (systemd-nspawn is installed by itself)."
endif

test: ## everything: lint, unit, node, cluster; says what it leaves out
ifeq ($(CAN_RUN_NODES),yes)
	@$(MAKE) --no-print-directory setup
endif
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory node
	@$(MAKE) --no-print-directory cluster

bench: ## every benchmark, with its budget
	$(GO) test -run '^$$' -bench . -benchmem ./...

demo: ## bootstrap a real node, prove it, refuse a dead proxy, undo a bad one (root, Debian)
	cd integration && $(GO) run ./cmd/demo

lab-up: ## bring up a lab and leave it running
	cd integration && $(LAB) up

lab-shell: ## a shell on a node of the lab: make lab-shell NODE=n1
	@cd integration && $(LAB) shell $(or $(NODE),n1)

lab-status: ## addresses, logins and what runs
	@cd integration && $(LAB) status

lab-down: ## remove the lab
	cd integration && $(LAB) down

image: build ## build the two container images (buildah)
	@for program in proxyward proxyward-agent; do \
		buildah --storage-driver vfs bud --isolation chroot --target $$program -t $$program:$(VERSION) . || exit 1; done
