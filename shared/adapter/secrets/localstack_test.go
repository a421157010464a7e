//go:build localstack

package secrets_test

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// TestSecretOnLocalStack fills, reads and rotates a secret.
func TestSecretOnLocalStack(t *testing.T) {
	t.Parallel()
	cfg, stage := awstest.LocalStack(t), strings.ToLower(rand.Text())
	if _, err := secrets.Put(t.Context(), cfg, stage, secrets.Fly{Token: "t"}); err == nil || !strings.Contains(err.Error(), "deploying the stage") {
		t.Errorf("missing secret: got %v", err)
	}
	var made struct{ ARN string }
	awstest.Prepare(t, cfg, "secretsmanager.CreateSecret", map[string]any{"Name": secrets.Name(stage, "clients"), "ClientRequestToken": rand.Text() + rand.Text()}, &made)
	now := clock.NewVirtual(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	secret, err := secrets.Open[secrets.Clients](cfg, made.ARN, secrets.Config{Clock: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secret.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "sortie secrets put clients --stage "+stage) {
		t.Errorf("empty secret: got %v", err)
	}
	for _, token := range []string{"first-token-0123456789", "second-token-0123456789"} {
		if _, err := secrets.Put(t.Context(), cfg, stage, secrets.Clients{Tokens: []string{token}}); err != nil {
			t.Fatal(err)
		}
		now.Advance(time.Hour)
		if got, err := secret.Get(t.Context()); err != nil || len(got.Tokens) != 1 || got.Tokens[0] != token {
			t.Errorf("got tokens %v (%v), want %s", got.Tokens, err, token)
		}
	}
}
