package orchestrator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// tokenLimit is the longest token that is looked at, in bytes.
const tokenLimit = 4096

// callbackSlack is how long past the attempt's deadline its callback token is
// good.
const callbackSlack = time.Hour

// TokenLifeMost is longer than any token is good: the longest start limit and
// time limit of an attempt, and the slack.
const TokenLifeMost = anyLimitMost + timeLimitMost + callbackSlack

// tokenClaims are all claims of a token.
type tokenClaims struct {
	contract.Claims
	jwt.RegisteredClaims
}

// Validate refuses claims that the library leaves optional.
func (c tokenClaims) Validate() error {
	if c.ExpiresAt == nil || c.NotBefore == nil || c.IssuedAt == nil || c.Attempt < 1 || c.TaskID == "" {
		return errors.New("a claim is missing")
	}
	return nil
}

// callbackURL is the CALLBACK_URL of the run's attempt, with its token.
func (s *Service) callbackURL(ctx context.Context, r run.Run) (string, error) {
	token, err := s.mint(ctx, claimsOf(r), contract.AudienceCallback, r.Deadline().Add(callbackSlack))
	if err != nil {
		return "", err
	}
	query := url.Values{"token": {token}}
	return s.config.PublicURL + "/callback/" + url.PathEscape(r.TaskID) + "?" + query.Encode(), nil
}

// Keys lists the public halves of the keys that sign tokens, the current one
// first. It needs Signer alone.
func (s *Service) Keys(ctx context.Context) ([]port.VerificationKey, error) {
	keys, err := s.ports.Signer.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the verification keys: %w", err)
	}
	return keys, nil
}

// mint signs a token for an attempt.
func (s *Service) mint(ctx context.Context, claims contract.Claims, audience string, until time.Time) (string, error) {
	keyID, err := s.ports.Signer.Current(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot find the key to sign with: %w", err)
	}
	now := s.now()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, tokenClaims{
		Claims: claims,
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: contract.Issuer, Audience: jwt.ClaimStrings{audience}, Subject: claims.TaskID,
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-time.Minute)),
			ExpiresAt: jwt.NewNumericDate(until), ID: s.ports.Hex(16),
		},
	})
	token.Header["kid"] = keyID
	text, err := token.SigningString()
	if err != nil {
		return "", fmt.Errorf("cannot write the token: %w", err)
	}
	signature, err := s.ports.Signer.Sign(ctx, keyID, []byte(text))
	if err != nil {
		return "", fmt.Errorf("cannot sign the token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func claimsOf(r run.Run) contract.Claims {
	return contract.Claims{
		TenantID: r.Tenant, WorkspaceID: r.Workspace, RunID: r.ID, TaskID: r.TaskID, Attempt: r.Attempt.Number,
	}
}

// Bearer is who a good token speaks for, and how long it is good.
type Bearer struct {
	contract.Claims
	IssuedAt, ExpiresAt time.Time

	proven *proven // nil: the token is not remembered
}

func (b Bearer) ref() run.Ref { return run.Ref{Tenant: b.TenantID, ID: b.RunID} }

// VerifyToken checks signature, time, issuer and audience of a token, and that
// it is for the task. It needs Signer and Clock. Faults: Unauthenticated for a
// token that is not good here, Forbidden for one of another task.
func (s *Service) VerifyToken(ctx context.Context, token, audience, taskID string) (Bearer, error) {
	if token == "" {
		return Bearer{}, fault.New(fault.Unauthenticated, "a token is needed: the one of CALLBACK_URL, or as Authorization: Bearer")
	}
	if len(token) > tokenLimit {
		return Bearer{}, fault.New(fault.Unauthenticated, "the token is not valid")
	}
	keys, err := s.Keys(ctx)
	if err != nil {
		return Bearer{}, err
	}
	claims, proven, err := s.claimsIn(token, audience, keys)
	if err != nil {
		return Bearer{}, fault.Wrap(err, fault.Unauthenticated, "the token is not valid")
	}
	if claims.TaskID != taskID || claims.Subject != taskID {
		return Bearer{}, fault.New(fault.Forbidden, "the token is for another task")
	}
	return Bearer{claims.Claims, claims.IssuedAt.Time, claims.ExpiresAt.Time, proven}, nil
}

// claimsIn are the claims of a token that is good now, and is for the audience.
func (s *Service) claimsIn(token, audience string, keys []port.VerificationKey) (*tokenClaims, *proven, error) {
	rules := []jwt.ParserOption{
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithIssuer(contract.Issuer), jwt.WithAudience(audience),
		jwt.WithTimeFunc(s.now), jwt.WithStrictDecoding(),
	}
	if known := s.verified.find(token, keys); known != nil {
		claims := known.all()
		return claims, known, jwt.NewValidator(rules...).Validate(claims)
	}
	var by port.VerificationKey
	claims := &tokenClaims{}
	_, err := jwt.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		for _, by = range keys {
			if t.Header["kid"] == by.ID {
				return by.Public, nil
			}
		}
		return nil, errors.New("unknown key")
	}, rules...)
	if err != nil {
		return nil, nil, err
	}
	return claims, s.verified.add(token, by, claims), nil
}
