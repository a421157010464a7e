package callback_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// forger creates tokens that are almost valid.
type forger struct {
	stage  *apitest.Stage
	claims map[string]any
	kid    string
	public *ecdsa.PublicKey
}

func newForger(t *testing.T, stage *apitest.Stage, taskID, audience string) forger {
	t.Helper()
	keys, err := stage.Signer.Keys(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	now := apitest.Began.Unix()
	return forger{stage: stage, kid: keys[0].ID, public: keys[0].Public, claims: map[string]any{
		"tenantId": apitest.Tenant, "workspaceId": "main", "runId": taskID, "taskId": taskID, "attempt": 1,
		"iss": limit.Issuer, "aud": audience, "sub": taskID,
		"iat": now, "nbf": now, "exp": now + 3600, "jti": "x",
	}}
}

// signed returns a token with a valid signature. changes replaces claims; nil
// removes one.
func (f forger) signed(t *testing.T, header, changes map[string]any) string {
	t.Helper()
	claims := maps.Clone(f.claims)
	for name, value := range changes {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	full := map[string]any{"alg": "ES256", "typ": "JWT", "kid": f.kid}
	maps.Copy(full, header)
	text := part(t, full) + "." + part(t, claims)
	signature, err := f.stage.Signer.Sign(context.Background(), f.kid, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func part(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func with(name string, value any) map[string]any { return map[string]any{name: value} }

// workerRoutes returns the routes that require a worker's token, each with its
// audience, the other audience and a valid body.
func workerRoutes() map[string]workerRoute {
	return map[string]workerRoute{
		"callback":  {token.AudienceCallback, token.AudienceWorker, "/callback/%s", `{"status":"success"}`},
		"started":   {token.AudienceWorker, token.AudienceCallback, "/v1/tasks/%s/started", `{"attempt":1,"workerId":"w"}`},
		"heartbeat": {token.AudienceWorker, token.AudienceCallback, "/v1/tasks/%s/heartbeat", `{"attempt":1,"workerId":"w"}`},
		"completed": {token.AudienceWorker, token.AudienceCallback, "/v1/tasks/%s/completed", `{"attempt":1,"workerId":"w","outcome":"SUCCEEDED"}`},
	}
}

type workerRoute struct{ audience, other, path, body string }

func (d workerRoute) call(t *testing.T, stage *apitest.Stage, task, text string) apitest.Answer {
	t.Helper()
	path := fmt.Sprintf(d.path, task)
	if d.audience == token.AudienceCallback {
		return stage.Call(t, http.MethodPost, path+"?"+url.Values{"token": {text}}.Encode(), d.body)
	}
	// A header cannot contain control characters.
	text = strings.Map(func(c rune) rune {
		if c < ' ' {
			return -1
		}
		return c
	}, text)
	return stage.Call(t, http.MethodPost, path, d.body, "Authorization", "Bearer "+text)
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	for name, route := range workerRoutes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack(t, route)
		})
	}
}

// attack sends invalid tokens to one route.
func attack(t *testing.T, route workerRoute) {
	stage := setup(t)
	task := stage.Accept(t)
	stage.Start(t, task)
	elsewhere := stage.Accept(t)
	stage.Start(t, elsewhere)
	version := stage.Run(t, task).Version
	f := newForger(t, stage, task, route.audience)
	now := apitest.Began.Unix()
	good := f.signed(t, nil, nil)
	pieces := strings.Split(good, ".")

	const no, other = http.StatusUnauthorized, http.StatusForbidden
	for _, row := range []struct {
		name  string
		token string
		want  int
	}{
		{"none", "", no},
		{"alg none, no signature", part(t, map[string]any{"alg": "none", "kid": f.kid}) + "." + pieces[1] + ".", no},
		{"alg none, its signature", f.signed(t, with("alg", "none"), nil), no},
		{"alg None", part(t, map[string]any{"alg": "None", "kid": f.kid}) + "." + pieces[1] + ".", no},
		{"HS256 with the public key", hmacToken(t, f), no},
		{"alg ES384", f.signed(t, with("alg", "ES384"), nil), no},
		{"alg missing", f.signed(t, with("alg", nil), nil), no},
		{"signed by another key", otherKeyToken(t, f), no},
		{"signature of zeros", pieces[0] + "." + pieces[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), no},
		{"signature cut", good[:len(good)-4], no},
		{"signature missing", pieces[0] + "." + pieces[1] + ".", no},
		{"signature padded", good + "==", no},
		{"two parts", pieces[0] + "." + pieces[1], no},
		{"four parts", good + ".x", no},
		{"claims changed", pieces[0] + "." + part(t, with("taskId", task)) + "." + pieces[2], no},
		{"the other audience", f.signed(t, nil, with("aud", route.other)), no},
		{"a client's audience", f.signed(t, nil, with("aud", "sortie")), no},
		{"the task's other token", otherToken(t, stage, task, route), no},
		{"no audience", f.signed(t, nil, with("aud", nil)), no},
		{"wrong issuer", f.signed(t, nil, with("iss", "another-issuer")), no},
		{"no issuer", f.signed(t, nil, with("iss", nil)), no},
		{"expired", f.signed(t, nil, with("exp", now-1)), no},
		{"expires now", f.signed(t, nil, with("exp", now)), no},
		{"never expires", f.signed(t, nil, with("exp", nil)), no},
		{"expires in words", f.signed(t, nil, with("exp", "tomorrow")), no},
		{"not yet valid", f.signed(t, nil, with("nbf", now+60)), no},
		{"issued later than clocks differ", f.signed(t, nil, with("iat", now+61)), no},
		{"no begin", f.signed(t, nil, with("nbf", nil)), no},
		{"no time of issue", f.signed(t, nil, with("iat", nil)), no},
		{"attempt 0", f.signed(t, nil, with("attempt", 0)), no},
		{"attempt in words", f.signed(t, nil, with("attempt", "1")), no},
		{"another task", f.signed(t, nil, with("taskId", "export_mods_1_00000000")), other},
		{"another task's own token", newForger(t, stage, elsewhere, route.audience).signed(t, nil, nil), other},
		{"another tenant", f.signed(t, nil, with("tenantId", "tenant-b")), other},
		{"no tenant", f.signed(t, nil, with("tenantId", nil)), other},
		{"another subject", f.signed(t, nil, with("sub", "export_mods_1_00000000")), other},
		{"no task", f.signed(t, nil, with("taskId", nil)), no},
		{"another run", f.signed(t, nil, with("runId", "job:2026")), other},
		{"another workspace", f.signed(t, nil, with("workspaceId", "theirs")), other},
		{"unknown kid", f.signed(t, with("kid", "unknown"), nil), no},
		{"kid is a path", f.signed(t, with("kid", "../../keys.pem"), nil), no},
		{"kid is an object", f.signed(t, with("kid", map[string]any{"a": 1}), nil), no},
		{"kid is a list", f.signed(t, with("kid", []string{f.kid}), nil), no},
		{"no kid", f.signed(t, with("kid", nil), nil), no},
		{"kid brings a key", f.signed(t, map[string]any{"kid": "x", "jwk": with("kty", "EC")}, nil), no},
		{"oversized", f.signed(t, nil, with("jti", strings.Repeat("x", 5000))), no},
		{"far oversized", strings.Repeat("x", 50_000), no},
		{"control characters", "a\x00b\nc", no},
		{"no base64", "!!!.###.$$$", no},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			answer := route.call(t, stage, task, row.token)
			if answer.Status != row.want {
				t.Errorf("got %d %s, want %d", answer.Status, answer.Body, row.want)
			}
			if p := problem(t, answer); strings.Contains(p.Detail, "jwt") || strings.Contains(p.Detail, "signature") {
				t.Errorf("got a library's error text: %s, want our own text", p.Detail)
			}
			if now := stage.Run(t, task).Version; now != version {
				t.Errorf("got version %d, want %d", now, version)
			}
		})
	}
}

func TestWellFormedTokenIsAccepted(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	stage.Start(t, task)
	for _, name := range []string{"started", "heartbeat", "callback"} {
		route := workerRoutes()[name]
		if answer := route.call(t, stage, task, newForger(t, stage, task, route.audience).signed(t, nil, nil)); answer.Status != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", name, answer.Status, answer.Body)
		}
	}
}

// TestTokenOfAnotherAttemptIsRefused sends a valid token of the wrong attempt.
func TestTokenOfAnotherAttemptIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"started", "heartbeat", "completed"} {
		route := workerRoutes()[name]
		stage := setup(t)
		task := stage.Accept(t)
		stage.Start(t, task)
		f := newForger(t, stage, task, route.audience)
		if answer := route.call(t, stage, task, f.signed(t, nil, with("attempt", 2))); answer.Status != http.StatusForbidden {
			t.Errorf("%s: got %d %s for the token of attempt 2, want 403", name, answer.Status, answer.Body)
		}
	}
}

// otherToken returns the valid token of the same attempt for the other
// contract.
func otherToken(t *testing.T, stage *apitest.Stage, task string, d workerRoute) string {
	t.Helper()
	if d.audience == token.AudienceCallback {
		return stage.Envelope(t, task).TaskToken
	}
	return newForger(t, stage, task, token.AudienceCallback).signed(t, nil, nil)
}

func hmacToken(t *testing.T, f forger) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(f.public)
	if err != nil {
		t.Fatal(err)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(f.claims))
	token.Header["kid"] = f.kid
	return finish(t, token, der)
}

func otherKeyToken(t *testing.T, f forger) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims(f.claims))
	token.Header["kid"] = f.kid
	return finish(t, token, private)
}

func finish(t *testing.T, token *jwt.Token, key any) string {
	t.Helper()
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
