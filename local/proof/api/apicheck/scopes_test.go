package apicheck_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestPartOfARequestNeedsItsScope sends requests with a part that does the work of another
// operation. It must need the scope of that operation too.
func TestPartOfARequestNeedsItsScope(t *testing.T) {
	t.Parallel()
	const address, local = `"url":"https://hooks.example/"`, `"url":"https://127.0.0.1:1/"`
	for name, row := range map[string]struct {
		method, path, body string
		scope              access.Scope
		field              string
	}{
		"webhook of an export": {
			http.MethodPost, "/export/mods", `{"pi":"` + apitest.PI + `","webhook":{` + local + `}}`, access.WebhooksWrite, "webhook",
		},
		"hook of a run": {
			http.MethodPost, "/v1/runs", `{"image":"a","constraints":{"preRunHook":{` + address + `}}}`,
			access.WebhooksWrite, "constraints.preRunHook.url",
		},
		"webhook after a run": {
			http.MethodPost, "/v1/runs", `{"image":"a","actions":{"onFailure":{"type":"webhook","parameters":{` + address + `}}}}`,
			access.WebhooksWrite, "actions.onFailure.parameters.url",
		},
		"webhook of a new job": {
			http.MethodPut, "/v1/jobs/other", `{"image":"a","actions":{"onSuccess":{"type":"webhook","parameters":{` + address + `}}}}`,
			access.WebhooksWrite, "actions.onSuccess.parameters.url",
		},
		"hook of a job that would be stored": {
			http.MethodPut, "/v1/jobs/other?dryRun=true", `{"image":"a","constraints":{"postRunHook":{` + address + `}}}`,
			access.WebhooksWrite, "constraints.postRunHook.url",
		},
		"bucket of a job": {
			http.MethodPut, "/v1/jobs/other", `{"image":"a","sensor":{"bucket":{"name":"items","secretRef":"s"}}}`,
			access.WebhooksWrite, "sensor.bucket.endpoint",
		},
		"queue of a changed job": {
			http.MethodPatch, "/v1/jobs/" + ownJob, `{"sensor":{"queue":{` + address + `,"secretRef":"s"}}}`,
			access.WebhooksWrite, "sensor.queue.url",
		},
		"hook of a changed job": {
			http.MethodPatch, "/v1/jobs/" + ownJob, `{"constraints":{"postRunHook":{` + address + `}}}`,
			access.WebhooksWrite, "constraints.postRunHook.url",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage := withTokens(t)
			if answer := stage.Call(t, http.MethodPut, "/v1/jobs/"+ownJob, `{"image":"a"}`, "Authorization", "Bearer "+owner); answer.Status >= 300 {
				t.Fatalf("got %d %s, want the job stored", answer.Status, answer.Body)
			}
			answer := stage.Call(t, row.method, row.path, row.body, "Authorization", "Bearer "+without(row.scope))
			p := decode[contract.Problem](t, answer)
			if answer.Status != http.StatusForbidden || p.Code != "MISSING_SCOPE" || p.Field != row.field || !strings.Contains(p.Detail, string(row.scope)) {
				t.Errorf("without %s: got %d %+v, want 403 MISSING_SCOPE for %s", row.scope, answer.Status, p, row.field)
			}
			if answer = stage.Call(t, row.method, row.path, row.body, "Authorization", "Bearer "+owner); answer.Status >= 300 {
				t.Errorf("with %s: got %d %s, want a success", row.scope, answer.Status, answer.Body)
			}
		})
	}
}

// TestStoredAddressNeedsNoScope changes another field of a job that has a hook.
func TestStoredAddressNeedsNoScope(t *testing.T) {
	t.Parallel()
	stage := withTokens(t)
	const path, hook = "/v1/jobs/" + ownJob, `"constraints":{"preRunHook":{"url":"https://hooks.example/"}}`
	for _, call := range []struct{ token, body string }{{owner, `{"image":"a",` + hook + `}`}, {without(access.WebhooksWrite), `{"image":"b",` + hook + `}`}} {
		if answer := stage.Call(t, http.MethodPut, path, call.body, "Authorization", "Bearer "+call.token); answer.Status >= 300 {
			t.Errorf("%s: got %d %s, want the job stored", call.token, answer.Status, answer.Body)
		}
	}
}
