package token_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// FuzzVerify checks that only the signed claims are accepted, and that every other
// token is refused with one of two faults. A part may be base64 or JSON; the valid
// token's own parts are written "H", "C" and "S".
func FuzzVerify(f *testing.F) {
	for _, seed := range []string{
		"H.C.S", "H.C.", "H.C", "..", "", "H.C.S.S", "H.H.S", `{"alg":"none"}.C.`, `{"alg":"HS256","kid":"x"}.C.S`,
		`{"alg":"ES256","kid":"../../keys.pem"}.C.S`, `H.{"taskId":"t","attempt":2}.S`, `{"alg":"ES256","kid":["a"],"crit":["x"]}.{}.S`,
	} {
		f.Add(seed)
	}
	key := newKey(f, "k")
	verifier := token.NewVerifier(clock.NewVirtual(epoch))
	claims := token.Claims{TenantID: "a", WorkspaceID: "w", RunID: "t", TaskID: "t", Attempt: 1}
	valid, err := token.Mint(key.signing(), claims, token.Use{
		Audience: token.AudienceWorker, ID: "x", IssuedAt: epoch, ExpiresAt: epoch.Add(time.Hour),
	})
	if err != nil {
		f.Fatal(err)
	}
	cut := strings.Split(valid, ".")
	parts := map[string]string{"H": cut[0], "C": cut[1], "S": cut[2]}
	if b, err := verifier.Verify(valid, token.AudienceWorker, "t", published(key)); err != nil || b.Claims != claims {
		f.Fatalf("got claims %+v and error %v, want %+v", b.Claims, err, claims)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pieces := strings.Split(text, ".")
		for i, piece := range pieces {
			if own, ok := parts[piece]; ok {
				pieces[i] = own
			} else if strings.HasPrefix(piece, "{") {
				pieces[i] = base64.RawURLEncoding.EncodeToString([]byte(piece))
			}
		}
		bearer, err := verifier.Verify(strings.Join(pieces, "."), token.AudienceWorker, "t", published(key))
		switch {
		case err == nil && bearer.Claims != claims:
			t.Fatalf("got claims %+v for %q, want %+v", bearer.Claims, text, claims)
		case err != nil && !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.Forbidden):
			t.Fatalf("got error %v for %q, want Unauthenticated or Forbidden", err, text)
		}
	})
}
