# The text after ## is the help of a target: make without a target lists it.

# The version is that of the commit, whatever GOFLAGS says. Where git cannot read the checkout, as without .git, there is none.
BUILD    := CGO_ENABLED=0 go build -trimpath -buildvcs=$(if $(shell git rev-parse --verify -q HEAD 2>/dev/null),true,false)
FUZZTIME ?= 10s

STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help demo build page browsers test race fuzz lint bench bench-peers cross docs demo-svg man dist dist-check

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: build ## build bin/qt and bin/qtd, and open a session on this machine
	@if [ -t 0 ] && [ -t 1 ]; then \
		bin/qt connect localhost; \
	else \
		bin/qt connect localhost 'echo "a session of $$USER on $$(uname -n), held by process $$PPID"'; \
	fi

# Without the packages of npm, as where no network is, the programs are built without the page, and say so at /.
build: ## build bin/qt and bin/qtd, with the page for browsers in them
	@$(MAKE) --no-print-directory page || echo "qt and qtd are built without the page of today"
	$(BUILD) -o bin/ ./cmd/qt ./cmd/qtd

# The tests leave vetting to lint: each of them would vet all packages again. They, and the programs that they build or look
# for, are built as releases are, so that each package is compiled once, and before the first test: a compiler beside it
# takes the time that a test measures. The longest begin first.
TRIMPATH := GOFLAGS="$$(go env GOFLAGS) -trimpath"
LONGEST := ./quicterm/e2e ./quicterm/holder ./quicterm/client ./bench/suite

PACKAGES ?= ./...

page: ## make the page alone, which the next build puts into the programs
	cd quicterm/web/page && CGO_ENABLED=0 go run .

browsers: build ## try the page in real browsers, Chromium and Firefox: Debian's chromium-driver and firefox-esr
	cd quicterm/web/page && export CGO_ENABLED=0 && go vet ./... && go test -trimpath -vet=off -count=1 -v ./...

test: ## run the tests of PACKAGES
	CGO_ENABLED=0 $(TRIMPATH) go list -test -export $(LONGEST) $(PACKAGES) >/dev/null
	CGO_ENABLED=0 $(TRIMPATH) go test -vet=off -timeout 20m $(LONGEST) $(PACKAGES)

# Without GORACE, each program lasts a second longer: the test programs, and all that tests start. What starts
# no goroutine, and is tested by none, has nothing to race with.
race: ## run the tests with the race detector, with shorter simulations
	CGO_ENABLED=1 GORACE="$$GORACE atexit_sleep_ms=0" $(TRIMPATH) go test -race -short -vet=off -timeout 40m ./quicterm/e2e \
		$$(go list -f '{{.Dir}}' ./... | while read -r dir; do \
			! grep -qE '\bgo (func|[A-Za-z_.]+\()|\.Go\(|\.Parallel\(|AfterFunc|RunParallel|synctest' "$$dir"/*.go || echo "$$dir"; done)

fuzz: ## run each fuzz target for FUZZTIME
	@.ci/fuzz $(FUZZTIME)

lint: ## check formatting, and run go vet and staticcheck
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted"; exit 1; }
	go vet ./...
	go vet -tags ablation ./quicterm/session ./quicterm/sim
	$(STATICCHECK) ./...

bench: ## measure sessions over emulated networks, in five minutes; BENCH has more flags
	go run ./bench predict
	go run ./bench run $(BENCH)

bench-peers: ## measure ssh, mosh, et and tssh as well, if they are installed; needs root
	go run ./bench run --peers $(BENCH)

PLATFORMS := darwin/arm64 windows/amd64 android/arm64 freebsd/amd64 linux/amd64 linux/arm64

# With -j2, one links while another compiles.
cross: $(PLATFORMS:%=dist/%) ## build for the other systems and processors

.PHONY: $(PLATFORMS:%=dist/%)
$(PLATFORMS:%=dist/%): dist/%:
	GOOS=$(*D) GOARCH=$(*F) $(BUILD) -o $@/ \
		$(if $(filter-out linux,$(*D)),./cmd/qt) $(if $(filter linux darwin,$(*D)),./cmd/qtd)

docs: ## write docs/configuration.md again, from the sample files of settings
	go test ./configs -run '^TestConfigurationPage$$' -update

man: ## write the manual pages into dist/man
	mkdir -p dist/man
	go test -vet=off -count=1 -run '^TestManPages$$' ./cmd/qt ./cmd/qtd -man $(CURDIR)/dist/man -man-date $$(git log -1 --format=%ct)

dist: ## make a release of the commit in dist: programs, archives, packages, checksums
	rm -rf dist
	go run ./cmd/dist dist

dist-check: dist ## make it again, from nothing and elsewhere, and compare the bytes
	@again=$$(mktemp -d); trap 'rm -rf "$$again"' EXIT; \
	GOCACHE=$$again/cache go run ./cmd/dist $$again/dist && diff -r dist $$again/dist && echo "the same bytes twice"

demo-svg: ## draw docs/demo.cast, the session that the README shows
	go test ./bench/demo -update
