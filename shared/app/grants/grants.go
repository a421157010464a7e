package grants

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Grant has the token for a worker's calls and the URLs for its uploads, valid until ExpiresAt.
// It is a secret.
type Grant struct {
	Token       string
	Output, Log UploadURL
	ExpiresAt   time.Time
}

// UploadURL is a presigned URL for one PUT of one object.
type UploadURL struct{ URL, Key string }

// Grants issues tokens with upload URLs.
type Grants struct {
	*Tokens
	outputs port.Outputs
	ttl     time.Duration
}

// NewGrants returns the grants of tokens, with URLs of outputs. ttl is the usual time for which a
// grant is valid.
func NewGrants(tokens *Tokens, outputs port.Outputs, ttl time.Duration) Grants {
	return Grants{tokens, outputs, ttl}
}

// First issues the grant of a create call. It is valid for the configured time, or until the
// end of the grace after the attempt's deadline if that is later, but at most for
// limit.TokenTTL. So a worker that ignores renewals keeps its access as long as possible.
func (s Grants) First(ctx context.Context, r run.Run) (Grant, error) {
	covered := r.Deadline().Add(r.Policy.CancelGrace).Sub(s.clock.Now())
	return s.issue(ctx, claimsOf(r), min(max(s.ttl, covered), limit.TokenTTL))
}

// Renewal issues a grant if less than half of the token's life is left; nil
// otherwise.
func (s Grants) Renewal(ctx context.Context, bearer token.Bearer) (*Grant, error) {
	life := bearer.ExpiresAt.Sub(bearer.IssuedAt)
	if bearer.ExpiresAt.Sub(s.clock.Now()) >= life/2 {
		return nil, nil
	}
	grant, err := s.issue(ctx, bearer.Claims, life)
	if err != nil {
		return nil, err
	}
	return &grant, nil
}

// issue signs a token and upload URLs with the same lifetime. Each attempt has its own keys: a
// late upload of an earlier attempt cannot become the output.
func (s Grants) issue(ctx context.Context, claims token.Claims, life time.Duration) (g Grant, err error) {
	now := clock.UTC(s.clock)
	g.ExpiresAt = now.Add(life).Truncate(time.Second)
	if g.Token, err = s.mint(ctx, claims, token.AudienceWorker, g.ExpiresAt); err != nil {
		return Grant{}, err
	}
	ttl := g.ExpiresAt.Sub(now)
	if g.Output, err = s.upload(ctx, limit.AttemptOutput(claims.TaskID, claims.Attempt), ttl); err != nil {
		return Grant{}, err
	}
	if g.Log, err = s.upload(ctx, limit.AttemptLog(claims.TaskID, claims.Attempt), ttl); err != nil {
		return Grant{}, err
	}
	return g, nil
}

func (s Grants) upload(ctx context.Context, key string, ttl time.Duration) (UploadURL, error) {
	address, err := s.outputs.PresignPut(ctx, key, "", ttl)
	if err != nil {
		return UploadURL{}, fmt.Errorf("cannot sign the upload URL of %s: %w", key, err)
	}
	return UploadURL{URL: address, Key: key}, nil
}
