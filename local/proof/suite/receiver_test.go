package suite

import (
	"net/http"
	"testing"
	"time"
)

// TestSignaturesAreVerified checks the verification with a message signed on the command line:
// printf ... | openssl dgst -sha256 -hmac "$KEY" -binary | base64.
func TestSignaturesAreVerified(t *testing.T) {
	t.Parallel()
	const secret, body = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", `{"hook":"preRunHook"}`
	valid := map[string]string{
		"Webhook-Id": "msg-1", "Webhook-Timestamp": "1700000000", "X-Orchestrator-Timestamp": "1700000000",
		"X-Orchestrator-Signature": "sha256=dbabdcf49001ec40619fe92933d55917215db68c057e39003539be03ecb8a0e1", "Webhook-Signature": "v1,4dkT/ccodPDBVO5vp5wJfcQ16r0IVdHcfXlAdXyoCD4=",
	}
	verify := func(changed, value, text string) error {
		header := http.Header{}
		for name, each := range valid {
			header.Set(name, each)
		}
		if changed != "" {
			header.Set(changed, value)
		}
		return verifySignatures(header, []byte(text), time.Unix(1700000030, 0), secret)
	}
	if err := verify("", "", body); err != nil {
		t.Errorf("valid message: got %v", err)
	}
	if verify("", "", body+" ") == nil {
		t.Error("another body: got no error")
	}
	for name := range valid {
		for _, value := range []string{"", "1700000001", valid[name] + "x"} {
			if verify(name, value, body) == nil {
				t.Errorf("%s %q: got no error", name, value)
			}
		}
	}
}
