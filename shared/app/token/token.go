package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// The audiences of tokens.
const (
	// AudienceCallback is for POST /callback/{task_id} of the export contract.
	AudienceCallback = "sortie:callback"
	// AudienceWorker is for /v1/tasks/{task_id}/... of the worker contract.
	AudienceWorker = "sortie:worker"
	// AudienceCanary is for the heartbeats that Sortie sends to itself.
	AudienceCanary = "sortie:canary"
	// AudienceTicket is for event streams. The ticket is a query parameter.
	AudienceTicket = "sortie:ticket"
)

// CanaryTask is the task id of canaries. It is never that of a run.
const CanaryTask = "canary"

// Claims identify the attempt that a token authorizes.
type Claims struct {
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	RunID       string `json:"runId"`
	TaskID      string `json:"taskId"`
	Attempt     int    `json:"attempt"`
}

// all contains all claims of a token.
type all struct {
	Claims
	jwt.RegisteredClaims
}

// Validate returns an error if a claim is missing that the JWT library treats as optional.
func (c all) Validate() error {
	if c.ExpiresAt == nil || c.NotBefore == nil || c.IssuedAt == nil || c.Attempt < 1 || c.TaskID == "" {
		return errors.New("a claim is missing")
	}
	return nil
}

// Use contains the audience and the lifetime of a token.
type Use struct {
	Audience string
	// ID is the jti claim.
	ID string
	// IssuedAt and ExpiresAt are stored in whole seconds. The token is valid from
	// IssuedAt minus tolerance until ExpiresAt.
	IssuedAt, ExpiresAt time.Time
}

// tolerance is the permitted difference between the clocks of the processes that sign and
// verify a token.
const tolerance = time.Minute

// Key signs messages. Sign returns 64 bytes: R and S of ECDSA on P-256 with SHA-256. ID is
// the kid header of the tokens.
type Key struct {
	ID   string
	Sign func(message []byte) ([]byte, error)
}

// Mint returns a token that is signed with key. Its subject is the task.
func Mint(key Key, claims Claims, use Use) (string, error) {
	return key.mint(all{claims, use.registered(claims.TaskID)})
}

func (u Use) registered(subject string) jwt.RegisteredClaims {
	return jwt.RegisteredClaims{
		Issuer: limit.Issuer, Audience: jwt.ClaimStrings{u.Audience}, Subject: subject, ID: u.ID,
		IssuedAt: jwt.NewNumericDate(u.IssuedAt), NotBefore: jwt.NewNumericDate(u.IssuedAt.Add(-tolerance)),
		ExpiresAt: jwt.NewNumericDate(u.ExpiresAt),
	}
}

func (key Key) mint(claims jwt.Claims) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = key.ID
	text, err := token.SigningString()
	if err != nil {
		return "", fmt.Errorf("cannot encode the token: %w", err)
	}
	signature, err := key.Sign([]byte(text))
	if err != nil {
		return "", fmt.Errorf("cannot sign the token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
