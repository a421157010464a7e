package orchestrator

import (
	"crypto/sha256"
	"sync"

	"github.com/sortie-dev/sortie/shared/contract"
)

// verifiedLimit is how many tokens a process remembers the claims of.
const verifiedLimit = 32 << 10

// verified remembers the workers' tokens whose signature was found good, so that
// a heartbeat need not do that arithmetic again. What was signed never changes; all
// that does is held against the token each time: the keys that are good, and the
// clock.
type verified struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]signed
}

// signed are claims, and the key that signed them.
type signed struct {
	by     VerificationKey
	claims *tokenClaims
}

func newVerified() *verified { return &verified{tokens: map[[sha256.Size]byte]signed{}} }

// find gives the claims of a token that one of the keys has signed; nil where that
// has to be seen.
func (v *verified) find(token string, keys []VerificationKey) *tokenClaims {
	v.mu.RLock()
	found, ok := v.tokens[sha256.Sum256([]byte(token))]
	v.mu.RUnlock()
	if !ok {
		return nil
	}
	for _, key := range keys {
		if key.ID != found.by.ID {
			continue
		}
		if key.Public.Equal(found.by.Public) {
			return found.claims
		}
		break // another key goes by that name now
	}
	return nil
}

// add remembers a token that is good. Nobody changes its claims any more.
func (v *verified) add(token string, by VerificationKey, claims *tokenClaims) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.tokens) >= verifiedLimit {
		clear(v.tokens)
	}
	v.tokens[sha256.Sum256([]byte(token))] = signed{by, claims.lean()}
}

// lean are the same claims, without what nobody asks for, and with what is the
// same kept once.
func (c tokenClaims) lean() *tokenClaims {
	c.ID, c.Issuer = "", contract.Issuer
	if c.RunID == c.TaskID {
		c.RunID = c.TaskID
	}
	if c.Subject == c.TaskID {
		c.Subject = c.TaskID
	}
	return &c
}
