# `make help` lists the targets. All tools come from the go.mod files.
GO       ?= go
FUZZTIME ?= 30s
SOAK     ?= 2m
SEEDS    ?= 5000
VALUES   ?= 100000
WINDOW_IDS ?= 900000
SIMULATE_LINES ?= 10000000

# The folders of all modules, from go.work. The packages of all of them are "work".
MODULES = $(shell $(GO) list -m -f '{{.Dir}}')

# Reads the output of go test and its exit code.
REPORT = awk -f internal/tools/report.awk

# The packages that "make race" leaves out: those without goroutines, the command, whose
# goroutines are those of the library, and lab, whose databases take minutes to build. Of
# lab, lab/systemtest builds without them.
SEQUENTIAL = 'sqsfifo/(deploy|docs|examples|lab|lint/fifovet|lint/golangci|canonicaljson/internal|internal/(attempt|attrname|digest|directive|foreign|messageline|pacer|queueurl|seedtest|sourceuri|sqldb|textview|tools|vet)|cmd/sqsfifo/internal/(browsertest|input|page|probe|recent|timeline))(/|$$)|/cmd/sqsfifo$$'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## lose and double real Landsat scenes with the plain SDK, then send them with this module (SCENES=folder)
	@[ -z "$$($(GO) list -f '{{.StaleReason}}' github.com/aws/aws-sdk-go-v2/service/sqs)" ] || echo "building; the first time takes about a minute" >&2
	@$(GO) run ./examples/landsat $(SCENES)

.PHONY: demo-ops
demo-ops: ## test the alerts with promtool, and show each of them fire and end in Prometheus (two minutes; Debian: apt-get install prometheus)
	@cd lab && $(GO) run ./demoops

.PHONY: test
test: ## before each commit: every promise of all modules at its short depth, then the ten slowest packages
	@{ code=0; $(GO) test -short -shuffle=on -vet=off -p 4 -timeout 10m work || code=1; \
		$(GO) test -short -shuffle=on -vet=off -timeout 10m -tags safe ./canonicaljson || code=1; \
		echo "exit $$code"; } | $(REPORT)

.PHONY: test-long
test-long: ## each night: the full depth, with caches, containers, browsers, servers, golangci-lint, the installation and soak; says what it skips (network; for some tests Node 20 with npm)
	@! command -v npm >/dev/null || for dir in sqstest/testdata/node deploy/testdata/node reference/typescript; do \
		npm --prefix $$dir ci --no-audit --no-fund; done || true
	@{ code=0; SQSFIFO_GOLANGCI=1 $(GO) test -v -count=1 -shuffle=on -vet=off -timeout 90m work || code=1; \
		$(GO) test -v -count=1 -shuffle=on -vet=off -timeout 90m -tags safe ./canonicaljson || code=1; \
		$(GO) test -race -short -shuffle=on -vet=off -timeout 60m ./cmd/sqsfifo || code=1; \
		$(SOAKS); echo "exit $$code"; } | $(REPORT)

.PHONY: test-install
test-install: ## install the released modules of this working tree in empty folders, by the lines of the guides
	cd lab && $(GO) test -count=1 -timeout 30m ./release

# The bytes of a body must not depend on the version of Go. NEWER_GO has another
# implementation of encoding/json than the Go of go.mod.
NEWER_GO ?= go1.27.1
.PHONY: test-newer-go
test-newer-go: ## the vectors, canonical JSON, the envelope and the compliance suite with NEWER_GO (go1.27.1), if the go command can download that
	@if ! GOTOOLCHAIN=$(NEWER_GO) $(GO) version; then echo "skipped: $(NEWER_GO) cannot be had"; else \
		GOTOOLCHAIN=$(NEWER_GO) $(GO) test -short -vet=off -timeout 10m -run 'Vectors|Fuzz|Golden|Agree|Envelope|Build|Body|Compliant|Broken' -skip 'Reference|Fault' \
			./canonicaljson . ./internal/producertest/message ./docs/kfm ./sqstest/compliance; fi

# What a newcomer runs first must not change a file, so go.sum and go.work.sum must have
# every line. "go list -m all" loads the most modules. With -n the go command loads all
# packages and compiles none; .ci/run shows that the real commands change nothing either.
.PHONY: unchanged
unchanged: ## list, build, test and document each module in a fresh clone with the changes of this tree: no file changes
	@tmp=$$(mktemp -d) && trap 'rm -rf '$$tmp EXIT && git clone -q . $$tmp/clone && cd $$tmp/clone && \
	git -C $(CURDIR) diff --binary HEAD | git apply --index --allow-empty && \
	for m in $$($(GO) list -m -f '{{.Dir}}'); do \
		for verb in 'list -m all' 'list -deps -test ./...' 'build -n ./...' 'test -n ./...' "doc $$(cd $$m && $(GO) list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | head -1)"; do \
			(cd $$m && $(GO) $$verb) >$$tmp/out 2>&1 || { cat $$tmp/out; exit 1; }; \
			[ -z "$$(git status --porcelain | grep -v '^[^ ?] ')" ] || { echo "go $$verb in $$m changes files:"; git diff --stat; exit 1; }; \
		done; \
	done

# Each package RUNS times without other load, and RUNS times beside 4 busy processes.
RUNS ?= 20
.PHONY: flaky
flaky: ## run every package RUNS (20) times, shuffled, idle and beside a load of 4; output of failures in bin/flaky
	@mkdir -p bin/flaky; failed=0; busy=; trap 'kill $$busy 2>/dev/null' EXIT; \
	for load in idle loaded; do \
		[ $$load = idle ] || for i in 1 2 3 4; do (while :; do :; done) & busy="$$busy $$!"; done; \
		LOAD=$$load $(GO) test -p 1 -count=1 -short -shuffle=on -timeout 0 -exec "$(CURDIR)/lab/flaky/repeat.sh $(RUNS) $(CURDIR)/bin/flaky" work || failed=1; \
	done; exit $$failed

# The released modules, and the platforms of the releases.
RELEASED  = $(filter-out $(CURDIR)/lab $(CURDIR)/internal/%,$(MODULES))
PLATFORMS = linux/amd64 linux/arm64 linux/386 linux/arm darwin/arm64 darwin/amd64 windows/amd64 windows/arm64
.PHONY: cross
cross: ## build and vet each released module for each platform, and test the root on 386
	@failed=0; for p in $(PLATFORMS); do for m in $(RELEASED); do for verb in build vet; do \
		echo "$$p: go $$verb in $$m"; \
		(cd $$m && GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) $$verb ./...) || failed=1; \
	done; done; done; \
	host=$$($(GO) env GOHOSTOS GOHOSTARCH | xargs); \
	for arch in $${host#* } $$([ "$$host" != 'linux amd64' ] || echo 386); do \
		CGO_ENABLED=0 GOARCH=$$arch $(GO) test -short ./... || failed=1; \
	done; \
	exit $$failed

.PHONY: race
race: ## run the tests of the packages with goroutines under the race detector
	$(GO) test -race -short -shuffle=on -vet=off -timeout 20m $$($(GO) list work | grep -vE $(SEQUENTIAL)) ./lab/systemtest

# Runs the tests that take parameters. The shell variable `code` is 1 after any failure.
SOAKS = soak() { echo "go test $$*"; $(GO) test -count=1 -vet=off -timeout 0 "$$@" || code=1; }; \
	soak -run '^TestSoak$$' ./internal/producertest/doubt -soak $(SOAK); \
	soak -run '^TestModel$$|^TestStoreModel$$' ./internal/producertest/model -model.seeds $(SEEDS) -store.seeds $(SEEDS); \
	soak -run '^TestSystem$$' ./lab/systemtest -system.seeds $(SEEDS); \
	soak -run '^TestSystemSQLite$$' ./lab/systemtest -system.seeds $$(($(SEEDS) / 10 + 1)); \
	soak -run '^TestModel$$' ./replay -model.seeds $(SEEDS); \
	soak -run '^TestKilled$$' ./lab/replaytest -kill.groups 1000 -kill.items 100000 -kill.kills 20; \
	soak -run '^TestSendKilled$$' ./cmd/sqsfifo -send.all; \
	soak -run '^TestSimulation$$' ./consumer/consumertest -consumer.seeds 86 -consumer.messages 6000; \
	soak -run 'Reference|JavaScript|AFaultInEachRule|ThreeLanguages' ./docs/kfm -reference.values $(VALUES)
.PHONY: soak
soak: ## more seeds than test-long has: sends through faults for SOAK (2m); SEEDS (5000) random programs and systems; a replay and sends of 100,000 that are killed; two million deliveries; VALUES (100000) for the references
	@code=0; $(SOAKS); exit $$code

.PHONY: model
model: ## check the protocol of one event, without and with a store, with spin, if that and a C compiler are here
	docs/model/check.sh

# The go command sometimes reports its own deadline as a failure, with no input
# that fails; that is none.
.PHONY: fuzz
fuzz: ## run each fuzzer for FUZZTIME (30s)
	@for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$f"; \
			out=$$($(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg 2>&1) && continue; \
			case "$$out" in \
				*"Failing input"*) echo "$$out"; exit 1;; \
				*"context deadline exceeded"*) ;; \
				*) echo "$$out"; exit 1;; \
			esac; \
		done; \
	done

.PHONY: lint
lint: ## vet, sqsfifo vet, staticcheck, gofumpt, actionlint, phrases in comments
	$(GO) vet work
	$(GO) tool staticcheck work
	$(GO) build -C cmd/sqsfifo -o $(CURDIR)/bin/sqsfifo . && bin/sqsfifo vet $$($(GO) list ./... | grep -v /storetest/producertest)
	$(GO) tool actionlint -shellcheck= -pyflakes= .github/workflows/*.yml examples/ci/workflow.yml
	$(GO) test -C internal/tools -count=1 -run TestHabits .
	@# A fix of the analyzer is tested on a loop in one line, which gofumpt would break.
	@files=$$($(GO) tool gofumpt -l $$(git ls-files --cached --others --exclude-standard '*.go' ':!lint/fifovet/testdata/src/example.com/fixes')); \
		if [ -n "$$files" ]; then echo "not formatted by gofumpt:"; echo "$$files"; exit 1; fi

.PHONY: cover
cover: ## run all tests and print the coverage by function
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./...
	$(GO) tool cover -func=cover.out

.PHONY: bench
bench: ## run the benchmarks, bench-simulate, and bench-send for the ratios
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(MAKE) bench-simulate
	$(MAKE) bench-send

.PHONY: bench-simulate
bench-simulate: ## simulate over SIMULATE_LINES (10,000,000) lines: lines a second and peak memory, and with a page
	cd cmd/sqsfifo && SQSFIFO_SIMULATE_LINES=$(SIMULATE_LINES) $(GO) test -run '^$$' -bench 'BenchmarkSimulate$$' -benchtime 1x .
	cd cmd/sqsfifo && SQSFIFO_SIMULATE_LINES=$(SIMULATE_LINES) $(GO) test -run '^$$' -bench 'BenchmarkSimulatePage$$' -benchtime 1x .

.PHONY: bench-command
bench-command: ## sqsfifo send, with and without a journal, beside one call for each message, with the ratios
	cd cmd/sqsfifo && $(GO) test -run '^$$' -bench BenchmarkSend -benchtime 1x .

.PHONY: bench-canonical
bench-canonical: ## canonical JSON against its peers, in processor time, with the ratios
	cd lab && $(GO) run ./bench/canonical

.PHONY: bench-send
bench-send: ## sending against hand-written loops on the raw SDK, with the ratios
	cd lab && $(GO) run ./bench/send

.PHONY: bench-window
bench-window: ## the deduplication window against a map and caches (WINDOW_IDS=21000000 needs 16 GB)
	cd lab && $(GO) run ./bench/window -n $(WINDOW_IDS)

.PHONY: bench-store
bench-store: ## durable claims, one transaction each and in groups, without and with the ledger, and a producer with and without a store, with the ratios (SQLite, and PostgreSQL if it is here)
	cd lab && $(GO) run ./bench/store

.PHONY: bench-memory
bench-memory: ## what a queued event, a paused group and a remembered key take, and after ten idle minutes
	cd lab && $(GO) test -count=1 -v -run TestMemory ./bench/memory -keys 900000

.PHONY: corpus
corpus: ## the analyzer with the flags of sqsfifo vet over public modules, against findings labelled by hand (network, minutes); GIT=folder has those that the module proxy refuses
	cd lab/corpus && $(GO) run . $(if $(GIT),-git $(abspath $(GIT)))

.PHONY: bench-vet
bench-vet: ## sqsfifo vet beside go vet -vettool on this module, with a warm cache
	$(GO) test -run '^$$' -bench Warm -count 3 ./internal/vet

.PHONY: golangci
golangci: ## golangci-lint v2 built with the plugin, over a bad package (network, minutes)
	SQSFIFO_GOLANGCI=1 $(GO) test -count=1 -timeout 30m -run TestGolangciLintCustom -v ./lint/golangci

.PHONY: tidy
tidy: ## tidy every module
	@$(call each_tidy,,$(GO) mod edit -dropreplace $(ROOT) $$tmp/x.mod && cp $$tmp/x.mod go.mod && cp $$tmp/x.sum go.sum)

# The go command tidies a module without go.work, so each_tidy works on a copy of go.mod
# that replaces the root module by its folder. The first argument is a flag of go mod
# tidy, the second a command to run afterwards.
ROOT = github.com/kansas-frontier-matrix/sqsfifo
each_tidy = export GOWORK=off; tmp=$$(mktemp -d) && trap 'rm -r '$$tmp EXIT && for m in $(MODULES); do \
	(cd $$m && cp go.mod $$tmp/x.mod && cp go.sum $$tmp/x.sum && $(GO) mod edit -replace $(ROOT)=$(CURDIR) $$tmp/x.mod && \
	$(GO) mod tidy $1 -modfile=$$tmp/x.mod && $2) || exit 1; done

.PHONY: release-check
release-check: ## what a release of VERSION (v0.2.0) still needs, and the commands that publish it
	@cd lab && $(GO) run ./release $(VERSION)

.PHONY: release-rehearsal
release-rehearsal: ## pack each released module as the tag of VERSION (v0.1.0) would, into OUT, a folder for GOPROXY
	@cd lab && $(GO) run ./release $(VERSION) $(abspath $(OUT))

.PHONY: ci
ci: ## what CI runs: tidy modules, unchanged, lint, test, test-newer-go, race, test-install
	@$(call each_tidy,-diff,true)
	$(MAKE) unchanged
	$(MAKE) lint
	$(MAKE) test
	$(MAKE) test-newer-go
	$(MAKE) race
	$(MAKE) test-install
