package session

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// The time for which a session and a ticket are valid.
const (
	SessionLife = 12 * time.Hour
	TicketLife  = 10 * time.Minute
)

// The kinds of the records.
const (
	KindSession = "console-session"
	KindTicket  = "console-ticket"
)

// Sessions stores the sessions of browsers, and the tickets that open them. It is safe for
// concurrent use.
type Sessions struct {
	store  port.ResourceStore
	tokens httpkit.TokenSource
	clock  clock.Clock
	random io.Reader
}

// NewSessions returns sessions in a store. They are valid as long as tokens has their token.
func NewSessions(store port.ResourceStore, tokens httpkit.TokenSource, c clock.Clock, random io.Reader) *Sessions {
	return &Sessions{store: store, tokens: tokens, clock: c, random: random}
}

// Session is an open session or a ticket.
type Session struct {
	Key    string // the value of the cookie: tenant and secret
	record port.Resource
	secret []byte
	// Text is the client token, and token its record.
	Text  string
	Token access.Token
	Until time.Time
}

// Identity returns the caller that the session authenticates.
func (s Session) Identity() port.Identity {
	return port.IdentityOf(s.Token)
}

// entry is the document of a record.
type entry struct {
	// Digest is that of the client token, Sealed the token itself.
	Digest string    `json:"digest"`
	Sealed []byte    `json:"sealed"`
	Until  time.Time `json:"until"`
}

// ErrSignedOut means that a key opens nothing: it is unknown, expired, or its token was revoked.
var ErrSignedOut = fault.New(fault.Unauthenticated, "not signed in, or the session has ended")

// known returns the record of a client token. The fault is Unauthenticated.
func (s *Sessions) known(ctx context.Context, matches func(access.Token) bool) (access.Token, error) {
	for refreshed := false; ; refreshed = true {
		tokens, _, err := s.tokens.Current(ctx)
		if err != nil {
			return access.Token{}, fmt.Errorf("cannot read the client tokens: %w", err)
		}
		if i := slices.IndexFunc(tokens, matches); i >= 0 && !tokens[i].Expired(s.clock.Now()) {
			return tokens[i], nil
		}
		if refreshed {
			return access.Token{}, fault.New(fault.Unauthenticated, "the token is unknown, was revoked or has expired")
		}
		s.tokens.Refused()
	}
}

// knownText returns the record of the token with a text. The fault is Unauthenticated.
func (s *Sessions) knownText(ctx context.Context, text string) (access.Token, error) {
	return s.known(ctx, func(t access.Token) bool {
		_, ok := access.Find([]access.Token{t}, text)
		return ok
	})
}

// Create stores a record of a kind for a client token, and removes expired ones.
func (s *Sessions) Create(ctx context.Context, kind, text string, life time.Duration) (Session, error) {
	token, err := s.knownText(ctx, text)
	if err != nil {
		return Session{}, err
	}
	secret, err := s.Secret(32)
	if err != nil {
		return Session{}, err
	}
	now := s.clock.Now().UTC()
	until := now.Add(life)
	if !token.ExpiresAt.IsZero() && token.ExpiresAt.Before(until) {
		until = token.ExpiresAt
	}
	sealed, err := s.seal(secret, []byte(text))
	if err != nil {
		return Session{}, err
	}
	document, err := json.Marshal(entry{Digest: token.SHA256, Sealed: sealed, Until: until})
	if err != nil {
		return Session{}, fmt.Errorf("cannot encode a session: %w", err)
	}
	record := port.Resource{
		ResourceRef: port.ResourceRef{Tenant: token.Tenant, Kind: kind, ID: idOf(secret)},
		CreatedAt:   now, DueAt: until, Document: document,
	}
	if err := s.store.WriteResources(ctx, []port.Resource{record}, nil); err != nil {
		return Session{}, fmt.Errorf("cannot store a session: %w", err)
	}
	s.RemoveExpired(ctx, kind, now)
	key := token.Tenant + "." + base64.RawURLEncoding.EncodeToString(secret)
	return Session{Key: key, record: record, secret: secret, Text: text, Token: token, Until: until}, nil
}

// Secret returns random bytes.
func (s *Sessions) Secret(n int) ([]byte, error) {
	secret := make([]byte, n)
	if _, err := io.ReadFull(s.random, secret); err != nil {
		return nil, fmt.Errorf("cannot generate a secret: %w", err)
	}
	return secret, nil
}

// Records returns the store of the sessions.
func (s *Sessions) Records() port.ResourceStore { return s.store }

// removedAtOnce limits the expired records that a sign-in removes. Each sign-in adds one or two.
const removedAtOnce = 10

// RemoveExpired removes expired records. A failure leaves them to the next sign-in: an expired
// record opens nothing.
func (s *Sessions) RemoveExpired(ctx context.Context, kind string, now time.Time) {
	due, _, err := s.store.ResourcesDue(ctx, kind, now, "", removedAtOnce)
	if err != nil {
		httpkit.Log(ctx).WarnContext(ctx, "cannot find expired sessions", "error", err.Error())
		return
	}
	for _, ref := range due {
		record, err := s.store.LoadResource(ctx, ref)
		if err == nil && !now.Before(record.DueAt) {
			err = s.store.WriteResources(ctx, nil, []port.Resource{record})
		}
		if err != nil && !errors.Is(err, port.ErrNotFound) && !errors.Is(err, port.ErrConflict) {
			httpkit.Log(ctx).WarnContext(ctx, "cannot remove an expired session", "error", err.Error())
		}
	}
}

// Open returns the session or ticket that a key opens. It returns errSignedOut for other
// keys.
func (s *Sessions) Open(ctx context.Context, kind, key string) (Session, error) {
	tenant, text, _ := strings.Cut(key, ".")
	secret, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(secret) != 32 || tenant == "" || len(tenant) > 63 {
		return Session{}, ErrSignedOut
	}
	record, err := s.store.LoadResource(ctx, port.ResourceRef{Tenant: tenant, Kind: kind, ID: idOf(secret)})
	if errors.Is(err, port.ErrNotFound) {
		return Session{}, ErrSignedOut
	}
	if err != nil {
		return Session{}, fmt.Errorf("cannot read the session: %w", err)
	}
	var e entry
	if err := json.Unmarshal(record.Document, &e); err != nil {
		return Session{}, fmt.Errorf("cannot read the session: %w", err)
	}
	if !s.clock.Now().Before(e.Until) {
		return Session{}, ErrSignedOut
	}
	token, err := s.known(ctx, func(t access.Token) bool { return t.SHA256 == e.Digest && t.Tenant == tenant })
	if fault.Is(err, fault.Unauthenticated) {
		return Session{}, ErrSignedOut
	}
	if err != nil {
		return Session{}, err
	}
	opened, err := unseal(secret, e.Sealed)
	if err != nil {
		return Session{}, err
	}
	return Session{Key: key, record: record, secret: secret, Text: string(opened), Token: token, Until: e.Until}, nil
}

// End removes a record. ok is false if it was removed before: of concurrent calls, one gets true.
func (s *Sessions) End(ctx context.Context, of Session) (ok bool, err error) {
	record := of.record
	record.Version = max(record.Version, 1)
	err = s.store.WriteResources(ctx, nil, []port.Resource{record})
	if errors.Is(err, port.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot remove the session: %w", err)
	}
	return true, nil
}

// derived returns a value that only a holder of the secret can compute, for one purpose.
func derived(secret []byte, purpose string) []byte {
	sum := sha256.Sum256(append([]byte("sortie console "+purpose+"\x00"), secret...))
	return sum[:]
}

// idOf returns the id of a record. The secret cannot be computed from it.
func idOf(secret []byte) string { return hex.EncodeToString(derived(secret, "id")) }

// seal encrypts a text with a key that is derived from the secret.
func (s *Sessions) seal(secret, text []byte) ([]byte, error) {
	cipher, err := sealer(secret)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, cipher.NonceSize())
	if _, err := io.ReadFull(s.random, nonce); err != nil {
		return nil, fmt.Errorf("cannot seal the token: %w", err)
	}
	return cipher.Seal(nonce, nonce, text, nil), nil
}

func unseal(secret, sealed []byte) ([]byte, error) {
	cipher, err := sealer(secret)
	if err != nil || len(sealed) < cipher.NonceSize() {
		return nil, errors.Join(errors.New("malformed session"), err)
	}
	text, err := cipher.Open(nil, sealed[:cipher.NonceSize()], sealed[cipher.NonceSize():], nil)
	if err != nil {
		return nil, fmt.Errorf("malformed session: %w", err)
	}
	return text, nil
}

func sealer(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(derived(secret, "seal"))
	if err != nil {
		return nil, fmt.Errorf("cannot seal: %w", err)
	}
	return cipher.NewGCM(block)
}
