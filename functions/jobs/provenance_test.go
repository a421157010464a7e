package jobs_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit/apitest"
)

// A run has the digest of its request in canonical JSON, whatever its formatting, and
// the client that sent it.
func TestRunHasTheDigestOfItsRequest(t *testing.T) {
	t.Parallel()
	const (
		of     = "sha256:215b1cde6c8f6db558a71ce6ae8f687cac9ccd2bac82f82ecf3818247c61a7e2" // {"parameters":{"A":"1","B":"2"}}
		ofNone = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // {}
	)
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	for _, row := range []struct{ body, want string }{
		{`{"parameters":{"A":"1","B":"2"}}`, of},
		{` { "parameters": {"B":"2", "A" : "\u0031"} } `, of},
		{"", ofNone},
	} {
		body, want := row.body, row.want
		created, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", body, 202)
		r := stage.Run(t, created.TaskID)
		if r.PayloadDigest != want || r.CreatedBy.Subject != "localhost" || len(r.CreatedBy.Scopes) == 0 {
			t.Errorf("%s: got digest %s by %+v, want %s by localhost with scopes", body, r.PayloadDigest, r.CreatedBy, want)
		}
	}
	first, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", `{"parameters":{"A":"1","B":"2"}}`, 202)
	apitest.Decoded[contract.CancelAnswer](t, stage, "POST", "/v1/runs/"+first.RunID+"/cancel", "", 200)
	again, _ := apitest.Decoded[contract.RetryAccepted](t, stage, "POST", "/v1/runs/"+first.RunID+"/retry", "", 202)
	if r := stage.Run(t, again.TaskID); r.PayloadDigest != ofNone {
		t.Errorf("got digest %s of a retry, want that of its own request, %s", r.PayloadDigest, ofNone)
	}
}
