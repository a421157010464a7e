package hook_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook"
)

// TestSignatures checks the headers (EE-5) against values of
// "openssl dgst -sha256 -mac HMAC".
func TestSignatures(t *testing.T) {
	t.Parallel()
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	key, err := hook.ParseKey(secret + "\n")
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	key.Sign(header, "job_01-preRunHook", time.Unix(1772352000, 999), []byte(`{"hook":"preRunHook"}`))
	for name, want := range map[string]string{
		"X-Orchestrator-Signature": "sha256=dbabdcf49001ec40619fe92933d55917215db68c057e39003539be03ecb8a0e1",
		"X-Orchestrator-Timestamp": "1772352000",
		"Webhook-Id":               "job_01-preRunHook",
		"Webhook-Timestamp":        "1772352000",
		"Webhook-Signature":        "v1,G2zu7JxOxP9KJMeTXg0mYL6oTFQCZyjhXYooH+4zjfU=",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestZeroKeySignsNothing(t *testing.T) {
	t.Parallel()
	key, err := hook.ParseKey("")
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	key.Sign(header, "job_01", time.Unix(7, 0), nil)
	if header.Get(hook.HeaderSignature) != "" || header.Get(hook.HeaderWebhookSignature) != "" || header.Get(hook.HeaderTimestamp) != "7" {
		t.Errorf("got %v, want a timestamp and no signature", header)
	}
}

func TestMalformedSecrets(t *testing.T) {
	t.Parallel()
	encode := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for name, text := range map[string]string{
		"no prefix": encode(32), "another prefix": "WHSEC_" + encode(32), "short": "whsec_" + encode(31), "long": "whsec_" + encode(33),
		"not base64": "whsec_" + strings.Repeat("!", 44), "base64 of URLs": "whsec_" + base64.URLEncoding.EncodeToString([]byte(strings.Repeat("\xff", 32))),
		"space": "whsec_ " + encode(32),
	} {
		if _, err := hook.ParseKey(text); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want an error without the text", name, err)
		}
	}
}
