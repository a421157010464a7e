package jobs_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestRunHasTheDigestOfWhatItRuns checks that a run of a stored job has the client that sent it
// and a digest of its definition and parameters. The digest does not depend on the formatting
// of the request. A retry has the same digest.
func TestRunHasTheDigestOfWhatItRuns(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, stored, 201)
	definition, _ := apitest.Decoded[map[string]any](t, stage, "GET", path+"/versions/1", "", 200)
	for _, name := range []string{"version", "updatedAt", "updatedBy"} {
		delete(definition, name)
	}
	digest := func(parameters string) string {
		text, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		want, err := events.Digest(fmt.Appendf(nil, `{"definition":%s,"definitionVersion":1,"parameters":%s}`, text, parameters))
		if err != nil {
			t.Fatal(err)
		}
		return want
	}
	for _, row := range []struct{ body, parameters string }{
		{`{"parameters":{"A":"1","B":"2"}}`, `{"A":"1","B":"2"}`},
		{` { "parameters": {"B":"2", "A" : "\u0031"} } `, `{"A":"1","B":"2"}`},
		{`{"parameters":{"A":"2"}}`, `{"A":"2"}`},
		{"", "{}"},
		{`{"parameters":{}}`, "{}"},
	} {
		want := digest(row.parameters)
		created, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", row.body, 202)
		r := stage.Run(t, created.TaskID)
		if r.PayloadDigest != want || r.CreatedBy.Subject != "localhost" || len(r.CreatedBy.Scopes) == 0 {
			t.Errorf("%s: got digest %s by %+v, want %s by localhost with scopes", row.body, r.PayloadDigest, r.CreatedBy, want)
		}
		apitest.Decoded[contract.CancelAnswer](t, stage, "POST", "/v1/runs/"+created.RunID+"/cancel", "", 200)
		again, _ := apitest.Decoded[contract.RetryAccepted](t, stage, "POST", "/v1/runs/"+created.RunID+"/retry", "", 202)
		if r := stage.Run(t, again.TaskID); r.PayloadDigest != want {
			t.Errorf("%s: got digest %s of a retry, want that of the run, %s", row.body, r.PayloadDigest, want)
		}
	}
}
