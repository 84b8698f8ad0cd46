.DEFAULT_GOAL := help
.PHONY: help build test short lint verify generate bench parity search nightly matrices demo fuzz agents

help: ## show this
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the binary into bin/
	go build -o bin/ordain ./cmd/ordain

test: matrices ## everything that CI tests: with the race detector, and the large matrices whole
	ORDAIN_LONG=1 go test -timeout 20m -race ./...

matrices: ## the large matrices whole, of which go test takes a sample and CI (ORDAIN_MATRIX=ci) a larger one
	ORDAIN_LONG=1 ORDAIN_MATRIX=whole go test -timeout 30m \
		-run '^(TestParity|TestPublished|TestSops|TestSecondCompile|TestModels|TestChangedModels)' \
		./compiler ./compiler/internal/parity/generate

short: ## the quick tests only
	go test -short ./...

lint: ## formatting, vet and staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

generate: ## make generated files again
	go generate ./...

verify: generate ## fail when a generated file is not what the generator makes
	git diff --exit-code

bench: ## measure against the reference (installs it; takes a while)
	go run ./bench/push
	go run ./bench/compile

PARITY = go run ./compiler/internal/parity/tool

parity: ## compile the corpus with the reference too, show differences, record
	$(PARITY) record -write
	$(PARITY) record -write -corpus compiler/testdata/published -stories ""

search: ## compile generated models, new ones each time, with the reference too and show differences
	for f in careful feeds heirs wild places turns crosses mutants; do \
	  $(PARITY) search -family $$f -n 500 -seed $$(date +%s) || exit 1; done

nightly: ## compile generated models of all families, from fixed seeds, with the reference too
	$(PARITY) nightly

demo: ## the whole flow on a sample repository
	go run ./cmd/ordain demo

fuzz: ## fuzz every target for a little while
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	  go test -run '^$$' -fuzz "^$$f$$" -fuzztime 15s $$p || exit 1; done; done

agents: ## every check of the conformance suite, for ordain agent and for the agent in Python
	go build -o bin/ordain ./cmd/ordain
	bin/ordain agent conformance -- bin/ordain agent --isolation off
	ORDAIN_AGENTS=all go test -count=1 -run ThePythonAgent ./server/agent/target
