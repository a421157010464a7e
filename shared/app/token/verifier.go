package token

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Bearer is the holder of a valid token.
type Bearer struct {
	Claims
	IssuedAt, ExpiresAt time.Time

	verified *verified // nil if the token is not in the cache
}

// Matched reports whether MarkMatched was called for this token. It is always false for a
// token that is not in the cache.
func (b Bearer) Matched() bool { return b.verified != nil && b.verified.about.Load() != nil }

// MarkMatched records that the claims match the record of their run. A run never changes its
// workspace or its task id, so later calls need not compare them again. It has no effect for
// a token that is not in the cache.
func (b Bearer) MarkMatched(about About) {
	if b.verified != nil {
		b.verified.about.Store(&about)
	}
}

// About contains attributes of a run for log lines that the claims do not contain.
type About struct {
	// JobID and ScheduledAt are zero if the run has no job or no scheduled time.
	JobID, CorrelationID string
	ScheduledAt          time.Time
}

// About returns the About that MarkMatched recorded, or the zero value.
func (b Bearer) About() About {
	if b.Matched() {
		return *b.verified.about.Load()
	}
	return About{}
}

// Keys returns the public key with an id (kid), or nil if it is not published.
type Keys func(id string) *ecdsa.PublicKey

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	clock clock.Clock
	cache *cache
}

// NewVerifier returns a Verifier with an empty cache.
func NewVerifier(c clock.Clock) *Verifier { return &Verifier{clock: c, cache: newCache()} }

// Mint signs a token like the function Mint. If the key is published, it also caches the token,
// so that Verify does not check the signature while the key remains published.
func (v *Verifier) Mint(key Key, keys Keys, claims Claims, use Use) (string, error) {
	text, err := Mint(key, claims, use)
	if err != nil {
		return "", err
	}
	if public := keys(key.ID); public != nil {
		v.cache.add(text, signer{key.ID, public}, &all{claims, use.registered(claims.TaskID)})
	}
	return text, nil
}

// Verify checks a token's signature, times, issuer, audience and task, and returns its bearer.
// Faults: Unauthenticated for a missing or invalid token, Forbidden for a valid token of
// another task.
func (v *Verifier) Verify(token, audience, taskID string, keys Keys) (Bearer, error) {
	if token == "" {
		return Bearer{}, fault.New(fault.Unauthenticated, "missing token, want the one of CALLBACK_URL or Authorization: Bearer")
	}
	if len(token) > limit.Token {
		return Bearer{}, fault.New(fault.Unauthenticated, "invalid token")
	}
	claims, known, err := v.claims(token, audience, keys)
	if err != nil {
		return Bearer{}, fault.Wrap(err, fault.Unauthenticated, "invalid token")
	}
	if claims.TaskID != taskID || claims.Subject != taskID {
		return Bearer{}, fault.New(fault.Forbidden, "the token is for another task")
	}
	return Bearer{claims.Claims, claims.IssuedAt.Time, claims.ExpiresAt.Time, known}, nil
}

// claims returns the claims of a token, and its entry in the cache or nil. It returns an error
// unless the token is valid now for the audience.
func (v *Verifier) claims(token, audience string, keys Keys) (*all, *verified, error) {
	rules := v.rules(audience)
	if known := v.cache.find(token, keys); known != nil {
		claims := known.claims()
		return claims, known, errors.Join(jwt.NewValidator(rules...).Validate(claims), v.checkIssue(claims.IssuedAt))
	}
	claims := &all{}
	by, err := parse(token, claims, keys, rules)
	if err == nil {
		err = v.checkIssue(claims.IssuedAt)
	}
	if err != nil {
		return nil, nil, err
	}
	return claims, v.cache.verified(token, by, claims), nil
}

func (v *Verifier) rules(audience string) []jwt.ParserOption {
	return []jwt.ParserOption{
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithExpirationRequired(),
		jwt.WithIssuer(limit.Issuer), jwt.WithAudience(audience), jwt.WithTimeFunc(v.clock.Now), jwt.WithStrictDecoding(),
	}
}

// parse verifies a token by the rules and decodes it into claims. It returns the key that
// signed the token.
func parse(token string, claims jwt.Claims, keys Keys, rules []jwt.ParserOption) (by signer, err error) {
	_, err = jwt.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		by.id, _ = t.Header["kid"].(string)
		if by.public = keys(by.id); by.public == nil {
			return nil, errors.New("unknown key")
		}
		return by.public, nil
	}, rules...)
	return by, err
}

// checkIssue returns an error if a token was issued more than tolerance in the future. The
// check of the JWT library is not used, because its tolerance would also extend the expiry.
func (v *Verifier) checkIssue(at *jwt.NumericDate) error {
	if at.After(v.clock.Now().Add(tolerance)) {
		return fmt.Errorf("issued at %s, which is in the future", at)
	}
	return nil
}
