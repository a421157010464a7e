package orchestrator_test

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// FuzzToken lets nobody in but with what was signed: whatever else a token says,
// it is refused in one of two ways. A part may be written in base64 already, or
// not yet; the good token's own parts stand for "H", "C" and "S".
func FuzzToken(f *testing.F) {
	for _, seed := range []string{
		"H.C.S", "H.C.", "H.C", "..", "", "H.C.S.S", "H.H.S", `{"alg":"none"}.C.`, `{"alg":"HS256","kid":"x"}.C.S`,
		`{"alg":"ES256","kid":"../../keys.pem"}.C.S`, `H.{"taskId":"t","attempt":2}.S`, `{"alg":"ES256","kid":["a"],"crit":["x"]}.{}.S`,
	} {
		f.Add(seed)
	}
	signer, err := keyfile.Open(filepath.Join(f.TempDir(), "keys.pem"))
	if err != nil {
		f.Fatal(err)
	}
	service := orchestrator.New(orchestrator.Ports{Signer: signer, Clock: &clock{now: epoch}}, orchestrator.Config{})
	keyID, err := signer.Current(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	parts := map[string]string{
		"H": encode([]byte(`{"alg":"ES256","kid":"` + keyID + `"}`)),
		"C": encode([]byte(`{"tenantId":"a","workspaceId":"w","runId":"t","taskId":"t","attempt":1,"iss":"sortie","aud":["` +
			contract.AudienceWorker + `"],"sub":"t","iat":1772352000,"nbf":1772352000,"exp":1772355600,"jti":"x"}`)),
	}
	signature, err := signer.Sign(f.Context(), keyID, []byte(parts["H"]+"."+parts["C"]))
	if err != nil {
		f.Fatal(err)
	}
	parts["S"] = encode(signature)
	good := contract.Claims{TenantID: "a", WorkspaceID: "w", RunID: "t", TaskID: "t", Attempt: 1}
	if b, err := service.VerifyToken(f.Context(), parts["H"]+"."+parts["C"]+"."+parts["S"], contract.AudienceWorker, "t"); err != nil || b.Claims != good {
		f.Fatalf("the good token is %+v, %v", b, err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pieces := strings.Split(text, ".")
		for i, piece := range pieces {
			if ours, ok := parts[piece]; ok {
				pieces[i] = ours
			} else if strings.HasPrefix(piece, "{") {
				pieces[i] = encode([]byte(piece))
			}
		}
		bearer, err := service.VerifyToken(t.Context(), strings.Join(pieces, "."), contract.AudienceWorker, "t")
		switch {
		case err == nil && bearer.Claims != good:
			t.Fatalf("%q lets %+v in", text, bearer)
		case err != nil && !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.Forbidden):
			t.Fatalf("%q is refused with %v", text, err)
		}
	})
}
