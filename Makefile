.DEFAULT_GOAL := help
.PHONY: help build test short lint verify generate bench parity differ demo fuzz

help: ## show this
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the binary into bin/
	go build -o bin/ordain ./cmd/ordain

test: ## everything that CI tests: with the race detector, and the large matrices whole
	go test -timeout 20m -race ./...
	go test -timeout 20m ./compiler ./compiler/internal/parity/generate ./compiler/syntax

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

parity: ## compile the corpus with the reference too, show differences, record (ORDAIN_REFERENCE_PYTHON)
	go run ./compiler/internal/parity/record -python "$$ORDAIN_REFERENCE_PYTHON" -write
	go run ./compiler/internal/parity/record -python "$$ORDAIN_REFERENCE_PYTHON" -write -corpus compiler/testdata/published -stories ""

differ: ## compile generated models with the reference too and show differences (ORDAIN_REFERENCE_PYTHON)
	go run ./compiler/internal/parity/differ -n 500 -seed $$(date +%s)
	go run ./compiler/internal/parity/differ -feeds -n 500 -seed $$(date +%s)
	go run ./compiler/internal/parity/differ -heirs -n 500 -seed $$(date +%s)
	go run ./compiler/internal/parity/differ -wild -n 500 -seed $$(date +%s)
	go run ./compiler/internal/parity/differ -places -n 500 -seed $$(date +%s)
	go run ./compiler/internal/parity/differ -turns -errors -n 500 -seed $$(date +%s)
	go run ./compiler/internal/parity/differ -cross -n 500 -seed $$(date +%s)
	go run ./compiler/internal/parity/differ -mutate -n 500 -seed $$(date +%s)

demo: ## the whole flow on a sample repository
	go run ./cmd/ordain demo

fuzz: ## fuzz every target for a little while
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	  go test -run '^$$' -fuzz "^$$f$$" -fuzztime 15s $$p || exit 1; done; done
