package secrets_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

const (
	arn   = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:sortie/prod/fly-AbCdEf"
	first = `{"token":"FlyV1 fm2_first,fm2_other","later":true}`
	next  = `{"token":"FlyV1 fm2_next"}`
)

// desk is Secrets Manager with one secret, its reader, and the reader's clock.
type desk struct {
	*testing.T
	clock  *clock.Virtual
	secret *secrets.Secret[secrets.Fly]
	log    bytes.Buffer

	mu    sync.Mutex
	value string
	down  bool
	reads int
}

func setup(t *testing.T, value string) *desk {
	t.Helper()
	d := &desk{T: t, clock: clock.NewVirtual(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)), value: value}
	cfg := awstest.Serve(t, map[string]awstest.Call{"GetSecretValue": d.get})
	var err error
	d.secret, err = secrets.Open[secrets.Fly](cfg, arn, secrets.Config{Clock: d.clock, Log: slog.New(slog.NewTextHandler(&d.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) get(input json.RawMessage) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var request struct{ SecretId string } //nolint:revive,staticcheck // the API's spelling
	if err := json.Unmarshal(input, &request); err != nil || request.SecretId != arn {
		return nil, errors.New("another secret was asked for")
	}
	d.reads++
	switch {
	case d.down:
		return nil, awstest.Refusal{Code: "AccessDeniedException", Message: "not now"}
	case d.value == "":
		return nil, awstest.Refusal{Code: "ResourceNotFoundException", Message: "no value for AWSCURRENT"}
	}
	return map[string]any{"ARN": arn, "Name": "sortie/prod/fly", "SecretString": d.value}, nil
}

// becomes changes the value of the secret and whether it can be read.
func (d *desk) becomes(value string, down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.value, d.down = value, down
}

// gives checks the token that the reader returns and the number of calls so
// far.
func (d *desk) gives(token string, reads int) {
	d.Helper()
	got, err := d.secret.Get(d.Context())
	if err != nil || got.Token != token || d.reads != reads {
		d.Errorf("got token %q after %d reads (%v), want %q after %d", got.Token, d.reads, err, token, reads)
	}
}

func TestSecretIsCached(t *testing.T) {
	t.Parallel()
	d := setup(t, first)
	d.gives("FlyV1 fm2_first,fm2_other", 1)
	d.clock.Advance(secrets.DefaultTTL - time.Second)
	d.becomes(next, false)
	d.gives("FlyV1 fm2_first,fm2_other", 1)
	d.clock.Advance(time.Second)
	d.gives("FlyV1 fm2_next", 2)
	d.gives("FlyV1 fm2_next", 2)
}

// TestRefusalReloadsTheSecret reloads it at most every ten seconds.
func TestRefusalReloadsTheSecret(t *testing.T) {
	t.Parallel()
	d := setup(t, first)
	d.gives("FlyV1 fm2_first,fm2_other", 1)
	d.becomes(next, false)
	d.secret.Refused()
	d.gives("FlyV1 fm2_first,fm2_other", 1)
	d.clock.Advance(10 * time.Second)
	d.gives("FlyV1 fm2_next", 2)
	for range 5 {
		d.secret.Refused()
		d.gives("FlyV1 fm2_next", 2)
	}
	d.clock.Advance(10 * time.Second)
	d.gives("FlyV1 fm2_next", 3)
}

func TestOutageKeepsTheLastValue(t *testing.T) {
	t.Parallel()
	d := setup(t, first)
	d.gives("FlyV1 fm2_first,fm2_other", 1)
	d.becomes(next, true)
	d.clock.Advance(time.Hour)
	d.gives("FlyV1 fm2_first,fm2_other", 2)
	d.gives("FlyV1 fm2_first,fm2_other", 2)
	if !strings.Contains(d.log.String(), "sortie/prod/fly") || strings.Contains(d.log.String(), "fm2") {
		t.Errorf("got log %s", &d.log)
	}
	d.becomes(next, false)
	d.clock.Advance(10 * time.Second)
	d.gives("FlyV1 fm2_next", 3)
}

func TestMalformedDocumentKeepsTheLastValue(t *testing.T) {
	t.Parallel()
	d := setup(t, first)
	d.gives("FlyV1 fm2_first,fm2_other", 1)
	d.becomes(`{"token":""}`, false)
	d.clock.Advance(time.Hour)
	d.gives("FlyV1 fm2_first,fm2_other", 2)
}

func TestUnreadableSecret(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, value, says string }{
		{"never filled", "", "sortie secrets put fly --stage prod"},
		{"no JSON", "s3cret", "no JSON document"},
		{"a wrong type", `{"token":31337}`, "token is not of its type"},
		{"no token", `{}`, "token is missing"},
		{"a token with a line end", `{"token":"s3cret\n"}`, "token has a space"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := setup(t, row.value)
			_, err := d.secret.Get(t.Context())
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), "sortie/prod/fly") {
				t.Errorf("got error %v, want %q in it", err, row.says)
			}
			for _, never := range []string{"s3cret", "31337", "123456789012"} {
				if strings.Contains(err.Error(), never) {
					t.Errorf("got an error with %q: %v", never, err)
				}
			}
			if message := fault.Of(err).Message; strings.Contains(message, "sortie") {
				t.Errorf("got message %q for clients", message)
			}
			d.becomes(first, false)
			d.gives("FlyV1 fm2_first,fm2_other", 2)
		})
	}
}

func TestConcurrentReadersShareACall(t *testing.T) {
	t.Parallel()
	d := setup(t, first)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := d.secret.Get(context.Background()); err != nil {
				t.Error(err)
			}
			d.secret.Refused()
		})
	}
	all.Wait()
	if d.reads != 1 {
		t.Errorf("got %d reads of the secret, want 1", d.reads)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := setup(t, first)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.secret.Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	d.gives("FlyV1 fm2_first,fm2_other", 1)
}

func TestConfigNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := secrets.Open[secrets.Clients](awstest.Serve(t, nil), "", secrets.Config{TTL: -1})
	for _, part := range []string{"clients", "name", "time to live", "clock", "logger"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got an error without the %s: %v", part, err)
		}
	}
}
