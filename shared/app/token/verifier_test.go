package token_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// key is a signing key with an id that the test chooses.
type key struct {
	id      string
	private *ecdsa.PrivateKey
}

func newKey(t testing.TB, id string) key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key{id, private}
}

func (k key) signing() token.Key {
	return token.Key{ID: k.id, Sign: func(message []byte) ([]byte, error) {
		sum := sha256.Sum256(message)
		r, s, err := ecdsa.Sign(rand.Reader, k.private, sum[:])
		if err != nil {
			return nil, err
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
	}}
}

func published(keys ...key) token.Keys {
	return func(id string) *ecdsa.PublicKey {
		for _, k := range keys {
			if k.id == id {
				return &k.private.PublicKey
			}
		}
		return nil
	}
}

var anHour = token.Use{Audience: token.AudienceWorker, ID: "x", IssuedAt: epoch, ExpiresAt: epoch.Add(time.Hour)}

func mint(t *testing.T, k key, claims token.Claims) string {
	t.Helper()
	text, err := token.Mint(k.signing(), claims, anHour)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestVerifyChecksACachedToken caches a token by Verify or by Mint. It then changes the time, the
// keys or the token and verifies it again: the cache must not keep an invalid token valid.
func TestVerifyChecksACachedToken(t *testing.T) {
	t.Parallel()
	own, other := newKey(t, "own"), newKey(t, "other")
	claims := token.Claims{TenantID: "a", WorkspaceID: "w", RunID: "job:1", TaskID: "t", Attempt: 1}
	valid := mint(t, own, claims)
	flipped := func(at int) func(string) string {
		return func(token string) string {
			text := []byte(token)
			text[at] ^= 1
			return string(text)
		}
	}
	for name, test := range map[string]struct {
		change         func(token string) string
		audience, task string
		after          time.Duration
		keys           token.Keys
		want           fault.Code
	}{
		"unchanged":              {},
		"just before it expires": {after: time.Hour - time.Second},
		"a further key":          {keys: published(other, own)},
		"expired":                {after: time.Hour, want: fault.Unauthenticated},
		"within the tolerance":   {after: -time.Minute},
		"not valid yet":          {after: -61 * time.Second, want: fault.Unauthenticated},
		"key withdrawn":          {keys: published(), want: fault.Unauthenticated},
		"id of another key":      {keys: published(key{"own", other.private}), want: fault.Unauthenticated},
		"changed claims":         {change: flipped(90), want: fault.Unauthenticated},
		"changed signature":      {change: flipped(len(valid) - 20), want: fault.Unauthenticated},
		"other audience":         {audience: token.AudienceCallback, want: fault.Unauthenticated},
		"other task":             {task: "u", want: fault.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := &settable{clock.NewVirtual(epoch), epoch}
			keys := test.keys
			if keys == nil {
				keys = published(own)
			}
			for _, minted := range []bool{false, true} {
				now.at = epoch
				verifier, text := token.NewVerifier(now), valid
				if minted {
					var err error
					if text, err = verifier.Mint(own.signing(), published(own), claims, anHour); err != nil {
						t.Fatal(err)
					}
				}
				first, err := verifier.Verify(text, token.AudienceWorker, "t", published(own))
				if err != nil || first.Claims != claims {
					t.Fatalf("got claims %+v and error %v, want %+v", first.Claims, err, claims)
				}
				if test.change != nil {
					text = test.change(text)
				}
				now.at = epoch.Add(test.after)
				for range 2 {
					again, err := verifier.Verify(text, or(test.audience, token.AudienceWorker), or(test.task, "t"), keys)
					switch {
					case test.want != "" && !fault.Is(err, test.want):
						t.Errorf("minted %t: got error %v, want %s", minted, err, test.want)
					case test.want == "" && (err != nil || again != first):
						t.Errorf("minted %t: got bearer %+v and error %v, want %+v", minted, again, err, first)
					}
				}
			}
		})
	}
}

// TestOwnSignatureIsNotChecked mints tokens with an invalid signature. The verifier accepts them
// from its cache only if the key is published.
func TestOwnSignatureIsNotChecked(t *testing.T) {
	t.Parallel()
	own := newKey(t, "own")
	wrong := token.Key{ID: "own", Sign: func([]byte) ([]byte, error) { return make([]byte, 64), nil }}
	claims := token.Claims{TenantID: "a", WorkspaceID: "w", RunID: "t", TaskID: "t", Attempt: 1}
	for _, audience := range []string{token.AudienceCallback, token.AudienceWorker} {
		for published, keys := range map[bool]token.Keys{true: published(own), false: published()} {
			verifier := token.NewVerifier(clock.NewVirtual(epoch))
			use := anHour
			use.Audience = audience
			text, err := verifier.Mint(wrong, keys, claims, use)
			if err != nil {
				t.Fatal(err)
			}
			bearer, err := verifier.Verify(text, audience, "t", keys)
			if published != (err == nil && bearer.Claims == claims && bearer.ExpiresAt.Equal(use.ExpiresAt)) {
				t.Errorf("%s of a key that is published, %t: got %+v and error %v", audience, published, bearer, err)
			}
		}
	}
}

// TestIssueMayBeAMinuteAhead verifies a token with a clock that is behind the clock of the
// signing process.
func TestIssueMayBeAMinuteAhead(t *testing.T) {
	t.Parallel()
	k := newKey(t, "k")
	text := mint(t, k, token.Claims{TenantID: "a", WorkspaceID: "w", RunID: "t", TaskID: "t", Attempt: 1})
	for behind, valid := range map[time.Duration]bool{0: true, time.Minute: true, time.Minute + time.Second: false} {
		verifier := token.NewVerifier(clock.NewVirtual(epoch.Add(-behind)))
		if _, err := verifier.Verify(text, token.AudienceWorker, "t", published(k)); (err == nil) != valid {
			t.Errorf("a clock %s behind: got %v, want valid %t", behind, err, valid)
		}
	}
}

// settable is a clock whose time the test can set forward and back.
type settable struct {
	clock.Clock
	at time.Time
}

// Now implements clock.Clock.
func (s *settable) Now() time.Time { return s.at }

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// TestVerifyCachesTokensOfTenantsAndKeys alternates between two keys with the same id. The cache
// must not return tokens of the key that is not published.
func TestVerifyCachesTokensOfTenantsAndKeys(t *testing.T) {
	t.Parallel()
	keys := []key{newKey(t, "k"), newKey(t, "k")}
	verifier := token.NewVerifier(clock.NewVirtual(epoch))
	tokens := map[token.Claims][2]string{}
	for _, claims := range []token.Claims{
		{TenantID: "a", WorkspaceID: "w", RunID: "1", TaskID: "1", Attempt: 1},
		{TenantID: "a", WorkspaceID: "x", RunID: "job:1", TaskID: "2", Attempt: 2},
		{TenantID: "b", WorkspaceID: "w", RunID: "1", TaskID: "1", Attempt: 1},
	} {
		tokens[claims] = [2]string{mint(t, keys[0], claims), mint(t, keys[1], claims)}
	}
	for _, current := range []int{0, 0, 1, 1, 0} {
		for claims, both := range tokens {
			bearer, err := verifier.Verify(both[current], token.AudienceWorker, claims.TaskID, published(keys[current]))
			if err != nil || bearer.Claims != claims {
				t.Errorf("got claims %+v and error %v, want %+v", bearer.Claims, err, claims)
			}
			if _, err := verifier.Verify(both[1-current], token.AudienceWorker, claims.TaskID, published(keys[current])); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("got error %v for a token of the other key, want Unauthenticated", err)
			}
		}
	}
}

func TestMatchedIsCached(t *testing.T) {
	t.Parallel()
	k := newKey(t, "k")
	verifier := token.NewVerifier(clock.NewVirtual(epoch))
	text := mint(t, k, token.Claims{TenantID: "a", WorkspaceID: "w", RunID: "t", TaskID: "t", Attempt: 1})
	first, err := verifier.Verify(text, token.AudienceWorker, "t", published(k))
	if err != nil || first.Matched() {
		t.Fatalf("got matched %t and error %v, want a new bearer", first.Matched(), err)
	}
	about := token.About{JobID: "j", CorrelationID: "c", ScheduledAt: epoch}
	first.MarkMatched(about)
	if again, err := verifier.Verify(text, token.AudienceWorker, "t", published(k)); err != nil || !again.Matched() || again.About() != about {
		t.Errorf("got matched %t, about %+v and error %v, want true and %+v", again.Matched(), again.About(), err, about)
	}
}

// TestOnlyES256IsAccepted signs the claims of a valid token with other methods, or with the id of
// an event key, which is not published for workers' tokens.
func TestOnlyES256IsAccepted(t *testing.T) {
	t.Parallel()
	own := newKey(t, "own")
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.MapClaims{
		"iss": limit.Issuer, "aud": []string{token.AudienceWorker}, "sub": "t", "iat": epoch.Unix(), "nbf": epoch.Unix(), "exp": epoch.Add(time.Hour).Unix(),
		"tenantId": "a", "workspaceId": "w", "runId": "t", "taskId": "t", "attempt": 1,
	}
	public := own.private.PublicKey
	uncompressed, err := public.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method jwt.SigningMethod
		key    any
		id     string
		valid  bool
	}{
		{jwt.SigningMethodES256, own.private, "own", true},
		{jwt.SigningMethodES256, own.private, "event-1", false},
		{jwt.SigningMethodEdDSA, edwards, "own", false},
		{jwt.SigningMethodEdDSA, edwards, "event-1", false},
		{jwt.SigningMethodES384, p384, "own", false},
		{jwt.SigningMethodRS256, rsaKey, "own", false},
		{jwt.SigningMethodPS256, rsaKey, "own", false},
		{jwt.SigningMethodHS256, uncompressed, "own", false},
		{jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "own", false},
	} {
		made := jwt.NewWithClaims(row.method, claims)
		made.Header["kid"] = row.id
		text, err := made.SignedString(row.key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = token.NewVerifier(clock.NewVirtual(epoch)).Verify(text, token.AudienceWorker, "t", published(own))
		if row.valid != (err == nil) || err != nil && fault.Of(err).Code != fault.Unauthenticated {
			t.Errorf("%s with kid %s: got %v, want it accepted: %t", row.method.Alg(), row.id, err, row.valid)
		}
	}
}
