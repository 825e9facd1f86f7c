# `make help` lists the targets. All tools come from the go.mod files.
GO       ?= go
FUZZTIME ?= 30s
SOAK     ?= 2m
SEEDS    ?= 5000
WINDOW_IDS ?= 900000
SIMULATE_LINES ?= 10000000
TOOL      = $(GO) tool -modfile=$(CURDIR)/internal/tools/go.mod

# Every module of the repository: the root is the one that users import, the
# others hold what they must not see: tools, the peers of the benchmarks, a
# database.
MODULES = . cmd/sqsfifo internal/tools benchmarks internal/corpus examples/outbox docs/kfm/schemas idempotency/storetest idempotency/sqlstore/sqlstoretest idempotency/redisstore idempotency/dynamostore outbox/outboxtest

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## lose and double real Landsat scenes with the plain SDK, then send them with this module (SCENES=folder)
	@[ -z "$$($(GO) list -f '{{.StaleReason}}' github.com/aws/aws-sdk-go-v2/service/sqs)" ] || echo "building; the first time takes about a minute" >&2
	@$(GO) run ./examples/landsat $(SCENES)

.PHONY: test
test: ## run all tests
	$(GO) test -shuffle=on ./...
	$(GO) test -short -tags safe ./canonicaljson
	cd cmd/sqsfifo && $(GO) test ./...
	cd benchmarks && $(GO) test ./...
	cd examples/outbox && $(GO) test ./...
	cd internal/corpus && $(GO) test ./...
	cd docs/kfm/schemas && $(GO) test ./...
	cd idempotency/storetest && $(GO) test -short ./...
	cd idempotency/sqlstore/sqlstoretest && $(GO) test -short ./...
	cd outbox/outboxtest && $(GO) test -short ./...

.PHONY: test-stores
test-stores: ## the stores and the outbox in full, kills of clients and servers included (minutes); says which servers are here
	cd idempotency/storetest && $(GO) test -count=1 ./...
	cd idempotency/sqlstore/sqlstoretest && $(GO) test -count=1 -v ./... | grep -E '^(---|ok|FAIL|PASS)|SKIP|skip'
	cd idempotency/redisstore && $(GO) test -count=1 -v ./... | grep -E '^(---|ok|FAIL|PASS)|SKIP|skip'
	cd idempotency/dynamostore && $(GO) test -count=1 -v ./... | grep -E '^(---|ok|FAIL|PASS)|SKIP|skip'
	cd outbox/outboxtest && $(GO) test -count=1 -v ./... | grep -E '^(---|ok|FAIL|PASS)|SKIP|skip'

.PHONY: node-test
node-test: ## the fake against AWS's SDK for JavaScript; needs Node 20 and npm
	cd sqstest/testdata/node && npm ci --no-audit --no-fund
	$(GO) test -count=1 -run 'TestNodeClient|TestFaultsFromNode' -v ./sqstest

.PHONY: race
race: ## run all tests under the race detector
	$(GO) test -race -shuffle=on -short ./...
	cd cmd/sqsfifo && $(GO) test -race -short ./...

.PHONY: soak
soak: ## send through faults for SOAK (2m); 5,000 random programs each of resends, of processes with a store and of replays; a replay and a send of 100,000 that are killed 20 times
	$(GO) test -count=1 -timeout 0 -run '^TestSoak$$' -v . -soak $(SOAK)
	$(GO) test -count=1 -timeout 0 -run '^TestModel$$' -v . -model.seeds $(SEEDS) | grep -v '^ *---\|=== '
	$(GO) test -count=1 -timeout 0 -run '^TestStoreModel$$' -v . -store.seeds $(SEEDS) | grep -v '^ *---\|=== '
	$(GO) test -count=1 -timeout 0 -run '^TestKilled$$|^TestModel$$' -v ./replay -kill.groups 1000 -kill.items 100000 -kill.kills 20 -model.seeds $(SEEDS) | grep -v '^ *---\|=== '
	cd cmd/sqsfifo && $(GO) test -count=1 -timeout 0 -run '^TestSendKilled$$' -v . -send.all | grep -v '^ *---\|=== '

.PHONY: simulate-system
simulate-system: ## random systems of producers, a store, a queue and consumers that crash, for SEEDS (5,000) seeds; a tenth of them over SQLite with its ledger
	$(GO) test -count=1 -timeout 0 -run '^TestSystem$$' -v ./internal/systemtest -system.seeds $(SEEDS) | grep -v '^ *---\|=== '
	cd idempotency/sqlstore/sqlstoretest && $(GO) test -count=1 -timeout 0 -run '^TestSystem$$' -v . -system.seeds $$(($(SEEDS) / 10 + 1)) | grep -v '^ *---\|=== '

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
lint: ## vet, sqsfifo vet, staticcheck, gofumpt
	$(GO) vet ./...
	$(GO) build -C cmd/sqsfifo -o $(CURDIR)/bin/sqsfifo . && bin/sqsfifo vet ./...
	cd cmd/sqsfifo && $(GO) vet ./... && $(TOOL) staticcheck ./...
	$(TOOL) staticcheck ./...
	cd benchmarks && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd examples/outbox && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd internal/corpus && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd docs/kfm/schemas && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd idempotency/storetest && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd idempotency/sqlstore/sqlstoretest && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd idempotency/redisstore && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd idempotency/dynamostore && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd outbox/outboxtest && $(GO) vet ./... && $(TOOL) staticcheck ./...
	@files=$$($(TOOL) gofumpt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
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
	cd benchmarks && $(GO) run ./canonical

.PHONY: bench-send
bench-send: ## sending against hand-written loops on the raw SDK, with the ratios
	cd benchmarks && $(GO) run ./send

.PHONY: bench-window
bench-window: ## the deduplication window against a map and caches (WINDOW_IDS=21000000 needs 16 GB)
	cd benchmarks && $(GO) run ./window -n $(WINDOW_IDS)

.PHONY: bench-emulators
bench-emulators: ## sqsfifo serve against moto, fauxqs and goaws, with the ratios (network for npm and pip)
	cd benchmarks && $(GO) run ./emulators

.PHONY: bench-store
bench-store: ## durable claims, one transaction each and in groups, without and with the ledger, and a producer with and without a store, with the ratios (SQLite, and PostgreSQL if it is here)
	cd idempotency/sqlstore/sqlstoretest && $(GO) run ./bench

.PHONY: bench-memory
bench-memory: ## what a queued event, a paused group and a remembered key take, and after ten idle minutes
	cd benchmarks && $(GO) test -count=1 -v -run TestMemory ./memory -keys 900000

.PHONY: corpus
corpus: ## the analyzer over public modules, with all infos, against findings labelled by hand (network, minutes); GIT=folder has those that the module proxy refuses
	cd internal/corpus && $(GO) run . $(if $(GIT),-git $(abspath $(GIT)))

.PHONY: bench-vet
bench-vet: ## sqsfifo vet beside go vet -vettool on all of gocloud.dev: cold, warm, memory (network, minutes)
	cd internal/corpus && $(GO) run . -speed gocloud.dev

.PHONY: golangci
golangci: ## golangci-lint v2 built with the plugin, over a bad package (network, minutes)
	SQSFIFO_GOLANGCI=1 $(GO) test -count=1 -timeout 30m -run TestGolangciLintCustom -v ./lint/golangci

.PHONY: tidy
tidy: ## tidy every module
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy) || exit 1; done

.PHONY: release-check
release-check: ## what a release of VERSION (v0.2.0) still needs, and the commands that publish it
	@$(GO) run ./internal/release $(VERSION)

.PHONY: ci
ci: ## what CI runs: tidy modules, lint, test, race, demo
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff) || exit 1; done
	$(MAKE) lint
	$(MAKE) test
	$(MAKE) race
	$(MAKE) demo
