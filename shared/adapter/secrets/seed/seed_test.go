package seed_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/adapter/secrets/seed"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// parameters is Systems Manager with at most one parameter.
type parameters struct {
	*testing.T

	mu     sync.Mutex
	value  string
	before string // the value that another process stores before the first call of PutParameter
	made   int
}

func (p *parameters) get(json.RawMessage) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.value == "" {
		return nil, awstest.Refusal{Code: "ParameterNotFound", Message: "no such parameter"}
	}
	return map[string]any{"Parameter": map[string]any{"Name": secrets.SeedName("prod"), "Value": p.value}}, nil
}

func (p *parameters) put(input json.RawMessage) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var request struct {
		Name, Value, Type string
		Overwrite         bool
	}
	if err := json.Unmarshal(input, &request); err != nil || request.Name != "/sortie/prod/events" || request.Type != "SecureString" || request.Overwrite {
		p.Errorf("got %s, %v, want an encrypted parameter that replaces no other", input, err)
	}
	p.made++
	if p.before != "" {
		p.value, p.before = p.before, ""
		return nil, awstest.Refusal{Code: "ParameterAlreadyExists", Message: "it exists"}
	}
	p.value = request.Value
	return map[string]any{"Version": 1}, nil
}

// open returns the seed as a new process reads it, and the log of that process.
func (p *parameters) open() (*secrets.Secret[secrets.Events], *bytes.Buffer) {
	p.Helper()
	var log bytes.Buffer
	cfg := awstest.Serve(p.T, map[string]awstest.Call{"GetParameter": p.get, "PutParameter": p.put})
	now := clock.NewVirtual(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC))
	opened, err := seed.Open(cfg, secrets.SeedName("prod"), secrets.Config{Clock: now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		p.Fatal(err)
	}
	return opened, &log
}

// TestSeedIsMadeOnce reads the seed in two processes of a new stage.
func TestSeedIsMadeOnce(t *testing.T) {
	t.Parallel()
	p := &parameters{T: t}
	first, _ := p.open()
	second, _ := p.open()
	made, err := first.Get(t.Context())
	if err != nil || len(made.Bytes()) != 32 {
		t.Fatalf("got a seed of %d bytes, %v, want 32", len(made.Bytes()), err)
	}
	again, err := second.Get(t.Context())
	if err != nil || again.Seed != made.Seed || p.made != 1 {
		t.Errorf("got another seed or %d parameters, %v, want the same one", p.made, err)
	}
}

// TestSeedOfAnotherProcessIsUsed has another process that creates the parameter after this one
// has not found it.
func TestSeedOfAnotherProcessIsUsed(t *testing.T) {
	t.Parallel()
	const theirs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH"
	p := &parameters{T: t, before: `{"seed":"` + theirs + `"}`}
	seed, _ := p.open()
	if got, err := seed.Get(t.Context()); err != nil || got.Seed != theirs {
		t.Errorf("got another seed, %v, want that of the other process", err)
	}
}

func TestUnusableSeed(t *testing.T) {
	t.Parallel()
	p := &parameters{T: t, value: `{"seed":"too-short"}`}
	seed, log := p.open()
	_, err := seed.Get(t.Context())
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "aws ssm delete-parameter --name /sortie/prod/events") {
		t.Errorf("got error %v, want the command that replaces it", err)
	}
	if p.made != 0 || strings.Contains(err.Error()+log.String(), "too-short") {
		t.Errorf("got %d new parameters and %v, want the old one without its value", p.made, err)
	}
}
