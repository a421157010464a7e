package token

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// cacheSize is the maximum number of cached tokens. A full cache is cleared.
const cacheSize = 32 << 10

// cache stores the claims of tokens that this process has verified or signed. The published
// keys, the times and the audience are still checked on every call.
type cache struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]*verified
	// origins contains one shared copy of each origin. The signer in a map key has a nil
	// public key.
	origins map[origin]*origin
}

// signer is the key that signed a token.
type signer struct {
	id     string
	public *ecdsa.PublicKey
}

// origin contains the attributes that many tokens share.
type origin struct {
	by                          signer
	audience, tenant, workspace string
}

// verified contains the claims of a cached token, without those that all cached tokens share.
type verified struct {
	origin                         *origin
	run, task                      string
	attempt                        int
	issuedAt, notBefore, expiresAt int64 // Unix seconds, the resolution of a token
	about                          atomic.Pointer[About]
}

func newCache() *cache {
	return &cache{tokens: map[[sha256.Size]byte]*verified{}, origins: map[origin]*origin{}}
}

// find returns the cached token, if its key is still published under the same id. It returns
// nil if the signature must be verified.
func (c *cache) find(token string, keys Keys) *verified {
	c.mu.RLock()
	found := c.tokens[sha256.Sum256([]byte(token))]
	c.mu.RUnlock()
	if found == nil {
		return nil
	}
	if public := keys(found.origin.by.id); public == nil || !public.Equal(found.origin.by.public) {
		return nil
	}
	return found
}

// verified caches a worker's token whose signature was verified. It returns nil for other
// tokens and does not cache them, because a callback token is used once.
func (c *cache) verified(token string, by signer, claims *all) *verified {
	if len(claims.Audience) != 1 || claims.Audience[0] != AudienceWorker || claims.Subject != claims.TaskID {
		return nil
	}
	return c.add(token, by, claims)
}

// add caches a token. The token must have one audience, and its subject must be its task.
func (c *cache) add(token string, by signer, claims *all) *verified {
	v := &verified{
		run: claims.RunID, task: claims.TaskID, attempt: claims.Attempt,
		issuedAt: claims.IssuedAt.Unix(), notBefore: claims.NotBefore.Unix(), expiresAt: claims.ExpiresAt.Unix(),
	}
	if v.run == v.task {
		v.run = v.task // share one string
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tokens) >= cacheSize {
		clear(c.tokens)
		clear(c.origins)
	}
	v.origin = c.shared(origin{by, claims.Audience[0], claims.TenantID, claims.WorkspaceID})
	c.tokens[sha256.Sum256([]byte(token))] = v
	return v
}

// shared returns the stored copy of an origin. The caller holds c.mu.
func (c *cache) shared(o origin) *origin {
	key := o
	key.by.public = nil
	known := c.origins[key]
	if known == nil || !known.by.public.Equal(o.by.public) {
		known = &o
		c.origins[key] = known
	}
	return known
}

// claims returns the claims of the token, except its id (jti).
func (v *verified) claims() *all {
	date := func(at int64) *jwt.NumericDate { return jwt.NewNumericDate(time.Unix(at, 0)) }
	return &all{
		Claims: Claims{
			TenantID: v.origin.tenant, WorkspaceID: v.origin.workspace, RunID: v.run, TaskID: v.task, Attempt: v.attempt,
		},
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: limit.Issuer, Audience: jwt.ClaimStrings{v.origin.audience}, Subject: v.task,
			IssuedAt: date(v.issuedAt), NotBefore: date(v.notBefore), ExpiresAt: date(v.expiresAt),
		},
	}
}
