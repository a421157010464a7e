package orchestrator_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
)

// ring is a Signer whose keys the test changes.
type ring struct {
	keys []port.VerificationKey
}

func (ring) Current(context.Context) (string, error) { return "", port.ErrNotFound }

func (ring) Sign(context.Context, string, []byte) ([]byte, error) {
	return nil, port.ErrNotFound
}

func (r *ring) Keys(context.Context) ([]port.VerificationKey, error) { return r.keys, nil }

// TestATokenThatWasGoodIsAsked has a token let in, and then what it was let in
// for taken away: who was let in once has no right to it the next time.
func TestATokenThatWasGoodIsAsked(t *testing.T) {
	t.Parallel()
	ours, stranger := keyOf(t), keyOf(t)
	const task = "export_mods_1_00000000"
	for name, row := range map[string]struct {
		audience, task string
		spoil          func(at *clock, keys *ring, token []byte)
		want           fault.Code
	}{
		"nothing": {},
		"time":    {spoil: func(at *clock, _ *ring, _ []byte) { at.now = at.now.Add(time.Hour - time.Second) }},
		"another key": {spoil: func(_ *clock, k *ring, _ []byte) {
			k.keys = append([]port.VerificationKey{stranger.key}, k.keys...)
		}},
		"it has expired":  {spoil: func(at *clock, _ *ring, _ []byte) { at.now = at.now.Add(time.Hour) }, want: fault.Unauthenticated},
		"it is not begun": {spoil: func(at *clock, _ *ring, _ []byte) { at.now = at.now.Add(-time.Second) }, want: fault.Unauthenticated},
		"its key is gone": {spoil: func(_ *clock, k *ring, _ []byte) { k.keys = nil }, want: fault.Unauthenticated},
		"its key's name is another's": {spoil: func(_ *clock, k *ring, _ []byte) {
			k.keys = []port.VerificationKey{{ID: ours.key.ID, Public: stranger.key.Public}}
		}, want: fault.Unauthenticated},
		"a byte of its text":      {spoil: func(_ *clock, _ *ring, token []byte) { token[90] ^= 1 }, want: fault.Unauthenticated},
		"a byte of its signature": {spoil: func(_ *clock, _ *ring, token []byte) { token[len(token)-20] ^= 1 }, want: fault.Unauthenticated},
		"the audience":            {audience: contract.AudienceCallback, want: fault.Unauthenticated},
		"the task":                {task: "export_mods_1_00000001", want: fault.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, keys := &clock{now: epoch}, &ring{keys: []port.VerificationKey{ours.key}}
			service := orchestrator.New(orchestrator.Ports{Signer: keys, Clock: at}, orchestrator.Config{})
			token := []byte(ours.sign(t, jwt.MapClaims{
				"tenantId": "a", "workspaceId": "w", "runId": "job:1", "taskId": task, "attempt": 1, "jti": "x",
				"iss": contract.Issuer, "aud": contract.AudienceWorker, "sub": task,
				"iat": epoch.Unix(), "nbf": epoch.Unix(), "exp": epoch.Add(time.Hour).Unix(),
			}))
			first, err := service.VerifyToken(t.Context(), string(token), contract.AudienceWorker, task)
			if err != nil {
				t.Fatal(err)
			}
			if row.spoil != nil {
				row.spoil(at, keys, token)
			}
			audience, path := contract.AudienceWorker, task
			if row.audience != "" {
				audience = row.audience
			}
			if row.task != "" {
				path = row.task
			}
			for range 2 {
				again, err := service.VerifyToken(t.Context(), string(token), audience, path)
				switch {
				case row.want != "" && !fault.Is(err, row.want):
					t.Errorf("the answer is %v, want %s", err, row.want)
				case row.want == "" && (err != nil || again != first):
					t.Errorf("it speaks for %+v, and spoke for %+v: %v", again, first, err)
				}
			}
		})
	}
}

// TestTokensOfManyTenants are remembered beside each other, under one key and then
// under another of its name.
func TestTokensOfManyTenants(t *testing.T) {
	t.Parallel()
	old, young := keyOf(t), keyOf(t)
	young.key.ID = old.key.ID
	keys := &ring{}
	service := orchestrator.New(orchestrator.Ports{Signer: keys, Clock: &clock{now: epoch}}, orchestrator.Config{})
	tokens := map[contract.Claims][2]string{}
	for _, claims := range []contract.Claims{
		{TenantID: "a", WorkspaceID: "w", RunID: "1", TaskID: "1", Attempt: 1},
		{TenantID: "a", WorkspaceID: "x", RunID: "job:1", TaskID: "2", Attempt: 2},
		{TenantID: "b", WorkspaceID: "w", RunID: "1", TaskID: "1", Attempt: 1},
	} {
		said := jwt.MapClaims{
			"tenantId": claims.TenantID, "workspaceId": claims.WorkspaceID, "runId": claims.RunID, "taskId": claims.TaskID,
			"attempt": claims.Attempt, "iss": contract.Issuer, "aud": contract.AudienceWorker, "sub": claims.TaskID,
			"iat": epoch.Unix(), "nbf": epoch.Unix(), "exp": epoch.Add(time.Hour).Unix(),
		}
		tokens[claims] = [2]string{old.sign(t, said), young.sign(t, said)}
	}
	for _, good := range []int{0, 0, 1, 1, 0} {
		keys.keys = []port.VerificationKey{[]signingKey{old, young}[good].key}
		for claims, both := range tokens {
			bearer, err := service.VerifyToken(t.Context(), both[good], contract.AudienceWorker, claims.TaskID)
			if err != nil || bearer.Claims != claims {
				t.Errorf("it speaks for %+v, want %+v: %v", bearer.Claims, claims, err)
			}
			if _, err := service.VerifyToken(t.Context(), both[1-good], contract.AudienceWorker, claims.TaskID); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("a token under the other key: %v", err)
			}
		}
	}
}

// signingKey is a key with its signer, which may know it by another name.
type signingKey struct {
	key    port.VerificationKey
	signer port.Signer
}

func keyOf(t *testing.T) signingKey {
	t.Helper()
	signer, err := keyfile.Open(filepath.Join(t.TempDir(), "keys.pem"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signer.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{keys[0], signer}
}

func (k signingKey) sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = k.key.ID
	text, err := token.SigningString()
	if err != nil {
		t.Fatal(err)
	}
	id, err := k.signer.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	signature, err := k.signer.Sign(t.Context(), id, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s.%s", text, token.EncodeSegment(signature))
}
