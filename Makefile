# Sortie needs Go and nothing else. The tools of "verify" are Go programs that
# are run by version; the first run builds them (two minutes on two cores).

GO ?= go
# Without paths of this machine in them, what one clone has compiled serves others too.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# All programs are static: no loader reads LD_PRELOAD and its like before they run.
export CGO_ENABLED := 0

GOFUMPT       := $(GO) run mvdan.cc/gofumpt@v0.12.0
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# A larger heap makes the compiler and the tests faster. It does not change what is built.
# Symbols for a debugger are half of a binary.
BUILD = GOGC=400 $(GO) build -ldflags '-s -w'

# sortie starts the programs of jobs with the sortie-exec of its folder.
PROGRAMS = ./local/sortie ./shared/sdk/go/sortie-exec

.PHONY: run
run: ## build, export the sample collection with a system of its own, save it to out/
	@$(BUILD) -o bin/ $(PROGRAMS)
	@bin/sortie demo

.PHONY: dev
dev: ## build and run the whole system on http://127.0.0.1:8080
	@$(BUILD) -o bin/ $(PROGRAMS)
	@bin/sortie dev

.PHONY: test
test: ## all tests that need Go alone; packages that wait for processes overlap with others
	GOGC=400 $(GO) test -p 4 -timeout 20m ./...

.PHONY: test-aws
test-aws: ## run the suite against URL=..., with a client token in SORTIE_TOKEN
	@SORTIE_URL="$(URL)" $(GO) test -tags aws ./local/proof/suite -run TestAccount -count 1 -v

.PHONY: race
race: ## all tests that need Go alone, with the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./...

SEEDS ?= 10000
KILLS ?= 1000
FUZZTIME ?= 20s

.PHONY: sim
sim: ## run SEEDS=10000 simulations of the whole system under a virtual clock; prints its progress each minute
	$(GO) test ./local/proof/simulation ./local/proof/simulation/answers -p 1 -count 1 -v -timeout 6h -args -seeds=$(SEEDS)

.PHONY: test-months
test-months: ## compare predicted starts with months of nine loads; "test" simulates a month of three
	$(GO) test ./shared/domain/explain -count 1 -v -timeout 20m -months

.PHONY: test-roles
test-roles: ## run the whole suite on the deployed functions with their roles; "test" runs a quarter
	$(GO) test ./local/proof/roles -count 1 -v -timeout 20m -args -every=1

.PHONY: chaos
chaos: ## kill the stack and its workers KILLS=1000 times during exports
	$(GO) test ./local/proof/chaos -count 1 -v -timeout 6h -kills=$(KILLS)

.PHONY: bench
bench: ## measure the local stack and print one table (some minutes)
	@$(GO) run ./local/proof/bench

# A part keeps its result in local/proof/report/results; REPORT.md has those of all parts.
# The peers need Go alone; "inference" installs gateways (Python 3.13). RECORDINGS=FILE has
# executions that were recorded on AWS.
PARTS ?=

.PHONY: report
report: ## measure the PARTS=a,b of a release's report (all: hours) and write local/proof/report/REPORT.md
	@SEEDS=$(if $(filter command environment,$(origin SEEDS)),$(SEEDS)) KILLS=$(if $(filter command environment,$(origin KILLS)),$(KILLS)) \
		$(GO) run ./local/proof/report -only "$(PARTS)"

.PHONY: report-compare
report-compare: ## name what became worse between the results in OLD=FOLDER and NEW=local/proof/report/results
	@$(GO) run ./local/proof/report compare $(OLD) $(or $(NEW),local/proof/report/results)

.PHONY: fuzz
fuzz: ## fuzz every parser that reads the outside world, FUZZTIME=20s each
	@git grep -l '^func Fuzz' -- '*_test.go' | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$file); do \
			echo "$$file $$target"; \
			$(GO) test ./$$(dirname $$file) -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x || exit 1; \
		done; \
	done

.PHONY: sdk
sdk: ## build the archive of an SDK in out/sdk, LANG=go, python, typescript or rust
	@shared/sdk/build.sh "$(if $(filter command,$(origin LANG)),$(LANG))"

# Each SDK is tested as its users get it: the built archive, in an environment of its own.
.PHONY: test-sdks
test-sdks: ## build and test the SDKs with the conformance kit and a live server, and the examples (Python 3.10, Node 22, Rust 1.88, Ruby)
	@$(BUILD) -o bin/ $(PROGRAMS)
	@shared/sdk/python/test.sh
	@shared/sdk/typescript/test.sh
	@shared/sdk/rust/test.sh
	@shared/sdk/examples/test.sh

# Without the SDK for Rust, which takes minutes to compile.
.PHONY: test-sdks-quick
test-sdks-quick: ## test the archives of the SDKs for Python and TypeScript without a server
	@shared/sdk/python/test.sh quick
	@shared/sdk/typescript/test.sh quick

# The validators need Node, Java, Maven and Python 3.13 beside Go, as LocalStack
# does; "validate" also synthesises the template. They are installed once for each
# state of the lock files in local/proof/validate, with hashes, under
# ${XDG_CACHE_HOME:-~/.cache}/sortie.
.PHONY: validate
validate: ## check the API, generated clients, the template and the state machine with external validators
	@SOURCE_API_URL=https://entities.example.org $(MAKE) --no-print-directory synth STAGE=dev
	@$(GO) run ./local/proof/validate

.PHONY: validate-quick
validate-quick: ## the same with few examples and without the template
	@$(GO) run ./local/proof/validate -quick

.PHONY: test-browser
test-browser: ## test the web console in Chromium, with axe (needs npm and chromium-headless-shell), TESTS=REGEXP
	$(GO) test -tags browser ./local/proof/browser -run '$(TESTS)' -count 1 -timeout 20m

# A part that takes less than a minute.
BROWSER_QUICK := ^(TestTicket|TestRunFromTheList|TestOtherPagesCannotAct|TestLogIsSearched|TestHostileTexts)$$

.PHONY: test-browser-quick
test-browser-quick: browser-tools ## the same with few tests
	CI=true $(GO) test -tags browser ./local/proof/browser -run '$(BROWSER_QUICK)' -count 1 -timeout 10m

.PHONY: browser-tools
browser-tools: # installs Chromium where apt-get can
	@command -v npm >/dev/null || { echo 'npm not found: install Node 22 or newer, then try again'; exit 1; }
	@[ -n "$(CHROMIUM)" ] || which chromium-headless-shell chromium chromium-browser google-chrome | grep -q . || \
		{ [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -q -y --no-install-recommends chromium-headless-shell; } || \
		{ echo 'Chromium not found: run "apt-get install chromium-headless-shell" as root, or set CHROMIUM to the path of one, then try again'; exit 1; }

# The pictures of the documents are among them. The terminal is drawn without an embedded font,
# which would be most of it.
FREEZE := $(GO) run github.com/charmbracelet/freeze@v0.2.2

PICTURES := calendar event overview playground webhook

.PHONY: screenshots
screenshots: build ## take pictures of the web console into out/screenshots, and those of the documents
	$(FREEZE) --execute local/proof/browser/terminal.sh --execute.timeout 1m --window --padding 20 --border.radius 8 --font.family monospace --font.size 13 --output local/sortie/terminal.svg
	$(GO) test -tags browser ./local/proof/browser -run TestScreenshots -count 1 -timeout 20m -args -pictures "$(CURDIR)/out/screenshots"
	install -m 644 out/screenshots/run-failed.webp functions/console/console.webp
	install -m 644 $(PICTURES:%=out/screenshots/%.webp) functions/console

.PHONY: nightly
nightly: validate test-browser race test-roles test-sdks test-dist test-localstack test-adapters test-containers test-kubernetes test-engines chaos-localstack test-months ## checks that are too long for .ci/run, at most 90 minutes
	@$(MAKE) --no-print-directory test-kubernetes NODE=kubelet
	$(GO) test ./local/proof/documents -run TestToursRun -count 1 -args -zsh
	$(GO) test ./shared/archtest -run ChangesInACopy -count 1 -v -timeout 60m -args -changes
	@$(MAKE) --no-print-directory sim SEEDS=1000
	@$(MAKE) --no-print-directory chaos KILLS=100

.PHONY: release-check
release-check: ## the long simulations before a release (hours)
	@$(MAKE) --no-print-directory sim SEEDS=10000
	@$(MAKE) --no-print-directory chaos KILLS=1000

LOCALSTACK_RUN := $(GO) run ./local/proof/localstack

.PHONY: localstack
localstack: ## start LocalStack on 127.0.0.1:4566 (LOCALSTACK=docker: in a container)
	@$(LOCALSTACK_RUN) start

.PHONY: localstack-stop
localstack-stop: ## stop it and remove everything except downloads
	@$(LOCALSTACK_RUN) stop

EVERY ?= 1

.PHONY: test-localstack
test-localstack: ## deploy to LocalStack, run every EVERY=1st test of the suite there (or those that match TESTS=), and deploy again during runs
	@$(LOCALSTACK_RUN) test --every $(EVERY) $(if $(filter-out .,$(TESTS)),--named '$(TESTS)')

.PHONY: test-adapters
test-adapters: ## run the tests of the adapters of AWS with LocalStack and DynamoDB Local
	@$(LOCALSTACK_RUN) adapters

# It needs Linux and root, or an engine in DOCKER_HOST. The command fetches Podman if it is
# missing, and starts one of its own.
.PHONY: test-containers
test-containers: ## run the tests with a real container engine (DOCKER_HOST, or a Podman of their own)
	@$(GO) run ./local/proof/podman $(GO) test -tags containers -count 1 -timeout 20m -p 1 -run "Real" ./shared/adapter/container ./local/twin/stack ./local/proof/runners ./local/sortie

.PHONY: chaos-localstack
chaos-localstack: ## kill processes of functions in LocalStack during 100 runs, and break functions
	@$(LOCALSTACK_RUN) chaos

# The control plane is built once for each state of its lock file, in minutes, and kept
# under ${XDG_CACHE_HOME:-~/.cache}/sortie; the build needs Go alone. NODE=kubelet runs the
# pods with a kubelet, containerd and runc, in place of nodes whose containers are
# processes. It needs root, and Debian's packages of runc and busybox, which it fetches.
NODE ?= process
TESTS ?= .

.PHONY: test-kubernetes
test-kubernetes: ## run the suite of runners, faults and jobs on a real Kubernetes control plane, NODE=process or kubelet, TESTS=REGEXP
	NODE=$(NODE) $(GO) test -tags kubernetes ./local/proof/kubernetes -run '$(TESTS)' -count 1 -timeout 40m

# The inference servers are installed once for each state of their lock files, in minutes, and
# kept under ${XDG_CACHE_HOME:-~/.cache}/sortie. llama-server is built from its source, which
# needs Python 3.13, cmake and a C++ compiler. vLLM needs Python 3.11, a C compiler, 3 GB on
# disk and 2 GB of memory; its greedy text is compared with that of llama-server.
ENGINES ?= llamacpp triton vllm

# QUICK=-quick plays few of the client libraries.
QUICK ?=
COMMA := ,

.PHONY: test-engines
test-engines: ## run the suites of engines and inference tasks on real inference servers, ENGINES="llamacpp triton vllm"
	@$(GO) run ./local/proof/engines/install $(ENGINES)
	$(GO) test -tags engines -count 1 -timeout 30m -p 1 -run 'TestReal.*/^($(subst $() $(),|,$(strip $(ENGINES))))$$' ./shared/adapter/engine ./local/twin/stack
	@$(if $(filter llamacpp vllm,$(ENGINES)),$(GO) run ./local/proof/validate $(QUICK) -only \
		$(subst $() $(),$(COMMA),$(strip $(foreach engine,$(filter llamacpp vllm,$(ENGINES)),openai-$(engine) libraries-$(engine)))))

.PHONY: cost
cost: ## measure the usage of a deployment in LocalStack and price it (stop it afterwards)
	@$(LOCALSTACK_RUN) start && $(LOCALSTACK_RUN) deploy >/dev/null && \
	env $$($(LOCALSTACK_RUN) env) $(GO) test -tags localstack ./local/proof/cost -run TestDeploymentCost -count 1 -v -timeout 10m -args -rewrite

.PHONY: build
build: ## build bin/sortie, and bin/sortie-exec, with which it starts programs
	$(BUILD) -o bin/ $(PROGRAMS)

.PHONY: sortie-exec
sortie-exec: ## build bin/sortie-exec, one static file that runs any program as a worker
	$(BUILD) -o bin/sortie-exec ./shared/sdk/go/sortie-exec

# PREFIX=/usr/local installs into /usr/local/bin, otherwise GOBIN or GOPATH/bin.
PREFIX ?=
BINDIR  = $(if $(PREFIX),$(PREFIX)/bin,$(or $(shell $(GO) env GOBIN),$(shell $(GO) env GOPATH)/bin))

.PHONY: install
install: build ## install sortie and sortie-exec into PREFIX/bin, or GOBIN
	@mkdir -p "$(BINDIR)" && install -m 755 bin/sortie bin/sortie-exec "$(BINDIR)"
	@echo "Installed sortie and sortie-exec in $(BINDIR)."

.PHONY: dist
dist: ## build archives, packages, a formula, module lists, checksums and install.sh of the version in out/dist
	@$(GO) run ./local/sortie/dist -time "$$(git log -1 --format=%ct)" -out out/dist

.PHONY: test-dist
test-dist: ## build HEAD for all targets and once more, compare, use the packages, install by version (Ruby, apt-get)
	$(GO) test -tags dist ./local/sortie/dist -count 1 -timeout 40m

.PHONY: docs
docs: ## write all documents as a static site to out/docs; the console serves them below /docs
	@$(GO) run ./local/proof/documents/site -out out/docs

.PHONY: fmt
fmt: ## format all files
	@git ls-files -z '*.go' | xargs -0 $(GOFUMPT) -l -w

.PHONY: generate
generate: ## write the generated parts of the documents
	$(GO) test ./shared/wire/contract ./events -run 'Fresh|UpToDate' -count 1 -args -rewrite
	$(GO) test ./events -run ExamplesFollow -count 1 -args -rewrite
	$(GO) test ./shared/archtest ./shared/sdk/go/generate ./local/proof/cost ./local/proof/bench/counts -run 'Fresh|WhatARunCosts' -count 1 -args -rewrite

.PHONY: generate-sdks
generate-sdks: ## write the generated files of the SDKs, LANG=go, python, typescript or rust; all without it
	@shared/sdk/generate.sh $(if $(filter command,$(origin LANG)),$(LANG))

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
	$(GO) test ./shared/archtest ./shared/sdk/go/generate ./local/proof/cost -run Fresh -count 1

.PHONY: vuln
vuln: ## look for known vulnerabilities (needs the network)
	$(GOVULNCHECK) ./...

# The deployed home. It needs Node beside Go: the CDK's command line is installed
# in exact versions into infra/.cdk, and the functions are built into infra/.build.
STAGE     ?= dev
ARCH      ?= arm64
CDK       ?= cdk
CDKFLAGS  ?=
DEPLOYFLAGS ?=
ALLOW_REMOVAL ?=
FUNCTIONS := $(filter-out worker watch,$(patsubst functions/%/bootstrap,%,$(wildcard functions/*/bootstrap)))
RUNCDK     = cd infra && JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=1 CDK_DISABLE_CLI_TELEMETRY=true \
	.cdk/node_modules/.bin/$(CDK)
CONTEXT    = -c stage=$(STAGE) -c arch=$(ARCH) $(CDKFLAGS)

.PHONY: functions
functions: ## build the functions for ARCH=arm64
	@rm -rf infra/.build/$(ARCH) # every file of the folder is deployed
	@for name in $(FUNCTIONS); do \
		GOOS=linux GOARCH=$(ARCH) $(GO) build -tags lambda.norpc -ldflags '-s -w -buildid=' \
			-o infra/.build/$(ARCH)/$$name/bootstrap ./functions/$$name/bootstrap || exit 1; \
	done

.PHONY: infra-tools
infra-tools: # the programs of synth, diff, deploy and destroy
	@command -v npm >/dev/null || { echo 'npm not found: install Node 22 or newer, then try again'; exit 1; }
	@node -e 'process.exit(Number(parseInt(process.versions.node) < 22))' || echo 'Node '$$(node --version)' is out of support: install Node 22 or newer' >&2
	@mkdir -p infra/.cdk && cd infra/.cdk && { cmp -s ../package.json package.json || { cp ../package.json . && \
		npm install --no-audit --no-fund --no-package-lock --loglevel=error || { rm -f package.json; exit 1; }; }; }

.PHONY: check-settings
check-settings: # names every problem of the settings of STAGE before anything else is built
	@cd infra && $(GO) build -o .cdk/infra . && .cdk/infra check $(CONTEXT)

.PHONY: synth
synth: check-settings functions infra-tools ## write the CloudFormation template of STAGE=dev to infra/.cdk/out
	$(RUNCDK) synth --quiet $(CONTEXT)

.PHONY: diff
diff: check-settings functions infra-tools ## show what deploying STAGE=dev would change
	$(RUNCDK) diff $(CONTEXT)

# What is compared with the deployed stack is what is deployed: the output of synth.
.PHONY: check-removal
check-removal: check-settings build synth # fails if a deployment would take away what ALLOW_REMOVAL=word,... does not permit
	bin/sortie stage check --stage $(STAGE) $(if $(ALLOW_REMOVAL),--allow-removal $(ALLOW_REMOVAL))

.PHONY: deploy
deploy: check-removal ## deploy STAGE=dev to the AWS account of the credentials
	$(RUNCDK) deploy --app .cdk/out --outputs-file .cdk/$(STAGE).json $(DEPLOYFLAGS) sortie-$(STAGE)
	@echo 'What is left to do: bin/sortie stage doctor $(STAGE)'

.PHONY: destroy
destroy: check-settings build synth ## remove STAGE=dev and its data; a stage that retains data is refused
	bin/sortie stage empty --stage $(STAGE)
	$(RUNCDK) destroy --app .cdk/out $(DEPLOYFLAGS) sortie-$(STAGE)

# Tests and measurements of the deployment, built for this host.
HOSTARCH = $(shell $(GO) env GOARCH)

.PHONY: test-infra
test-infra: ## test the template and the variables of each function (needs Node)
	cd infra && $(GO) test -count 1 ./...

.PHONY: rewrite-infra
rewrite-infra: # the summary of the template and the tables of infra/README.md
	cd infra && $(GO) test -count 1 ./stack -run Fresh -rewrite

.PHONY: bench-infra
bench-infra: ## measure sizes, start times and memory of the functions, and the time of synth and deploy
	@SOURCE_API_URL=https://entities.example.org $(MAKE) --no-print-directory synth STAGE=dev ARCH=$(HOSTARCH) CDKFLAGS='-c localstack=true' >/dev/null
	@cd infra && SOURCE_API_URL=https://entities.example.org JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=1 CDK_DISABLE_CLI_TELEMETRY=true $(GO) run ./bench
