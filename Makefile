# Sortie needs Go and nothing else. The tools of "verify" are Go programs, run
# by their versions; the first run builds them (two minutes on two cores).

GO ?= go

GOFUMPT       := $(GO) run mvdan.cc/gofumpt@v0.12.0
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start everything, export the sample collection, download it to out/
	@$(GO) run ./local/sortie demo

.PHONY: dev
dev: ## keep everything running on http://127.0.0.1:8080
	@$(GO) run ./local/sortie dev

.PHONY: test
test: ## all tests that need Go alone
	$(GO) test ./...

.PHONY: race
race: ## the same with the race detector
	$(GO) test -race -timeout 20m ./...

SEEDS ?= 10000
KILLS ?= 1000
FUZZTIME ?= 20s

.PHONY: sim
sim: ## play SEEDS=10000 simulations of the whole under a clock of their own
	$(GO) test ./local/simulation -count 1 -v -timeout 2h -seeds=$(SEEDS)

.PHONY: chaos
chaos: ## kill the stack and its workers KILLS=1000 times during exports
	$(GO) test ./local/chaos -count 1 -v -timeout 6h -kills=$(KILLS)

.PHONY: bench
bench: ## measure the local stack and print one table (some minutes)
	@$(GO) run ./local/bench

.PHONY: fuzz
fuzz: ## fuzz every parser that reads the outside world, FUZZTIME=20s each
	@git grep -l '^func Fuzz' -- '*_test.go' | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$file); do \
			echo "$$file $$target"; \
			$(GO) test ./$$(dirname $$file) -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x || exit 1; \
		done; \
	done

.PHONY: build
build: ## build the command line as bin/sortie
	$(GO) build -trimpath -o bin/sortie ./local/sortie

.PHONY: fmt
fmt: ## format all files
	@git ls-files -z '*.go' | xargs -0 $(GOFUMPT) -l -w

.PHONY: generate
generate: ## write the generated parts of the documents anew
	$(GO) test ./shared/archtest -run Fresh -count 1 -args -rewrite

.PHONY: verify
verify: format-check vet lint fresh ## format, vet, linters, generated files fresh

.PHONY: format-check
format-check:
	@unformatted=$$(git ls-files -z '*.go' | xargs -0 $(GOFUMPT) -l) && \
	if [ -n "$$unformatted" ]; then \
		printf 'Not formatted; "make fmt" does it:\n%s\n' "$$unformatted"; exit 1; \
	fi

.PHONY: vet
vet:
	$(GO) vet ./...

.PHONY: lint
lint: # staticcheck is one of them, in the version that it was built with
	$(GOLANGCI_LINT) run ./...

.PHONY: fresh
fresh:
	$(GO) test ./shared/archtest -run Fresh -count 1

.PHONY: vuln
vuln: ## look for known vulnerabilities (needs the network)
	$(GOVULNCHECK) ./...
