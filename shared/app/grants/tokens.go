// Package grants signs and verifies the tokens of workers, with the URLs of their uploads, and the
// tickets of readers.
package grants

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Tokens signs and verifies the tokens of workers.
type Tokens struct {
	signer   port.Signer
	clock    clock.Clock
	hex      func(n int) string
	verifier *token.Verifier
	// verifies has the keys of the last Verify; nil in a process that only signs.
	verifies atomic.Pointer[token.Keys]

	mu sync.Mutex
	// cached is the token of canaries, valid until cachedUntil.
	cached      string
	cachedUntil time.Time
}

// NewTokens returns Tokens under the signer's keys. hex returns n random bytes in hexadecimal.
func NewTokens(signer port.Signer, c clock.Clock, hex func(n int) string) *Tokens {
	return &Tokens{signer: signer, clock: c, hex: hex, verifier: token.NewVerifier(c)}
}

// Verify checks a token as token.Verifier does, under the keys that the signer
// publishes now.
func (s *Tokens) Verify(ctx context.Context, text, audience, taskID string) (token.Bearer, error) {
	keys, err := s.published(ctx)
	if err != nil {
		return token.Bearer{}, err
	}
	s.verifies.Store(&keys)
	return s.verifier.Verify(text, audience, taskID, keys)
}

// key returns the current signing key.
func (s *Tokens) key(ctx context.Context) (token.Key, error) {
	id, err := s.signer.Current(ctx)
	if err != nil {
		return token.Key{}, fmt.Errorf("cannot find the signing key: %w", err)
	}
	return token.Key{ID: id, Sign: func(message []byte) ([]byte, error) { return s.signer.Sign(ctx, id, message) }}, nil
}

// published returns the keys that the signer publishes now.
func (s *Tokens) published(ctx context.Context) (token.Keys, error) {
	keys, err := s.signer.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the verification keys: %w", err)
	}
	return func(id string) *ecdsa.PublicKey {
		for _, key := range keys {
			if key.ID == id {
				return key.Public
			}
		}
		return nil
	}, nil
}

// mint signs a token for an attempt.
func (s *Tokens) mint(ctx context.Context, claims token.Claims, audience string, until time.Time) (string, error) {
	key, err := s.key(ctx)
	if err != nil {
		return "", err
	}
	use := token.Use{Audience: audience, ID: s.hex(16), IssuedAt: s.clock.Now().UTC(), ExpiresAt: until}
	if keys := s.verifies.Load(); keys != nil {
		return s.verifier.Mint(key, *keys, claims, use)
	}
	return token.Mint(key, claims, use)
}

// The life of a canary's token, and how much of it must be left to use it again.
const (
	canaryTokenLife   = time.Hour
	canaryTokenUnused = 5 * time.Minute
)

// Canary returns a token for canaries, which no other call accepts.
func (s *Tokens) Canary(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now().UTC()
	if left := s.cachedUntil.Sub(now); left > canaryTokenUnused && left <= canaryTokenLife {
		return s.cached, nil
	}
	until := now.Add(canaryTokenLife)
	text, err := s.mint(ctx, token.Claims{TaskID: token.CanaryTask, Attempt: 1}, token.AudienceCanary, until)
	if err != nil {
		return "", err
	}
	s.cached, s.cachedUntil = text, until
	return text, nil
}

// VerifyCanary checks the token of a canary.
func (s *Tokens) VerifyCanary(ctx context.Context, text string) error {
	_, err := s.Verify(ctx, text, token.AudienceCanary, token.CanaryTask)
	return err
}

// CallbackURL returns the CALLBACK_URL of the run's attempt with its token.
func (s *Tokens) CallbackURL(ctx context.Context, r run.Run, publicURL string) (string, error) {
	text, err := s.mint(ctx, claimsOf(r), token.AudienceCallback, r.Deadline().Add(limit.CallbackSlack))
	if err != nil {
		return "", err
	}
	query := url.Values{"token": {text}}
	return publicURL + "/callback/" + url.PathEscape(r.TaskID) + "?" + query.Encode(), nil
}

func claimsOf(r run.Run) token.Claims {
	return token.Claims{
		TenantID: r.Tenant, WorkspaceID: r.Workspace, RunID: r.ID, TaskID: r.TaskID, Attempt: r.Attempt.Number,
	}
}
