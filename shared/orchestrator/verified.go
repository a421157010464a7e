package orchestrator

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/port"
)

// verifiedLimit is how many tokens a process remembers the claims of.
const verifiedLimit = 32 << 10

// verified remembers the workers' tokens whose signature was found good, so that
// a heartbeat need not do that arithmetic again. What was signed never changes; all
// that does is held against the token each time: the keys that are good, and the
// clock.
type verified struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]*proven
	// origins are those of the tokens, by all that names them: the keys in it
	// have no public half.
	origins map[origin]*origin
}

// origin is what many tokens have in common.
type origin struct {
	by                port.VerificationKey
	tenant, workspace string
}

// proven is what a token with a good signature says, without what is the same in
// all that are remembered.
type proven struct {
	origin                         *origin
	run, task                      string
	attempt                        int
	issuedAt, notBefore, expiresAt int64 // s since 1970; a token has no finer times
	// ofRun: the claims were held against their run. A run never changes its
	// workspace or its task, so a heartbeat need not read the record again.
	ofRun atomic.Bool
}

func newVerified() *verified {
	return &verified{tokens: map[[sha256.Size]byte]*proven{}, origins: map[origin]*origin{}}
}

// find looks for a token that one of the keys has signed; nil where that has to
// be seen.
func (v *verified) find(token string, keys []port.VerificationKey) *proven {
	v.mu.RLock()
	found := v.tokens[sha256.Sum256([]byte(token))]
	v.mu.RUnlock()
	if found == nil {
		return nil
	}
	for _, key := range keys {
		if key.ID != found.origin.by.ID {
			continue
		}
		if key.Public.Equal(found.origin.by.Public) {
			return found
		}
		break // another key goes by that name now
	}
	return nil
}

// add remembers a token that is good; nil where it is not a worker's for one task,
// as ours are.
func (v *verified) add(token string, by port.VerificationKey, c *tokenClaims) *proven {
	if len(c.Audience) != 1 || c.Audience[0] != contract.AudienceWorker || c.Subject != c.TaskID {
		return nil // a callback's is shown once
	}
	p := &proven{
		run: c.RunID, task: c.TaskID, attempt: c.Attempt,
		issuedAt: c.IssuedAt.Unix(), notBefore: c.NotBefore.Unix(), expiresAt: c.ExpiresAt.Unix(),
	}
	if p.run == p.task {
		p.run = p.task // kept once
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.tokens) >= verifiedLimit {
		clear(v.tokens)
		clear(v.origins)
	}
	p.origin = v.from(origin{by, c.TenantID, c.WorkspaceID})
	v.tokens[sha256.Sum256([]byte(token))] = p
	return p
}

// from gives the one copy of the origin that is kept. The caller holds v.mu.
func (v *verified) from(o origin) *origin {
	name := o
	name.by.Public = nil
	known := v.origins[name]
	if known == nil || !known.by.Public.Equal(o.by.Public) {
		known = &o
		v.origins[name] = known
	}
	return known
}

// all are the claims as they stood in the token.
func (p *proven) all() *tokenClaims {
	date := func(at int64) *jwt.NumericDate { return jwt.NewNumericDate(time.Unix(at, 0)) }
	claims := contract.Claims{
		TenantID: p.origin.tenant, WorkspaceID: p.origin.workspace, RunID: p.run, TaskID: p.task, Attempt: p.attempt,
	}
	return &tokenClaims{Claims: claims, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: contract.Issuer, Audience: jwt.ClaimStrings{contract.AudienceWorker}, Subject: p.task,
		IssuedAt: date(p.issuedAt), NotBefore: date(p.notBefore), ExpiresAt: date(p.expiresAt),
	}}
}
