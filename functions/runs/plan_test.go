package runs_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestRunIsExplainedAndPlanned explains a run over HTTP, and plans others without
// creating them.
func TestRunIsExplainedAndPlanned(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	read := func(answer apitest.Answer, into any) {
		t.Helper()
		if err := json.Unmarshal([]byte(answer.Body), into); err != nil || answer.Status != http.StatusOK {
			t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
		}
	}
	created := accepted(t, post(t, stage, "/v1/runs", `{"image":"a"}`), http.StatusAccepted)
	var x contract.Explanation
	read(stage.Call(t, http.MethodGet, "/v1/runs/"+created.RunID+"/explain", ""), &x)
	if x.RunID != created.RunID || x.State != created.State || x.Reason == "" || x.Message == "" || len(x.Limits) == 0 {
		t.Errorf("got %+v, want why the run %+v waits", x, created)
	}
	if answer := stage.Call(t, http.MethodGet, "/v1/runs/unknown/explain", ""); answer.Status != http.StatusNotFound {
		t.Errorf("got %d for an unknown run, want 404", answer.Status)
	}
	runs := func() int {
		var list contract.TaskList
		read(stage.Call(t, http.MethodGet, "/v1/runs", ""), &list)
		return len(list.Tasks)
	}
	before := runs()
	for body, want := range map[string]int{
		`{"image":"a","input":"aGVsbG8="}`:    http.StatusOK,
		`{"image":"a","input":"?"}`:           http.StatusBadRequest,
		`{"image":""}`:                        http.StatusBadRequest,
		`{"jobId":"unknown"}`:                 http.StatusNotFound,
		`{"jobId":"unknown","image":"a"}`:     http.StatusBadRequest,
		`{"jobId":"a","scheduledAt":"later"}`: http.StatusBadRequest,
		`[]`:                                  http.StatusBadRequest,
	} {
		answer := post(t, stage, "/v1/runs:plan", body)
		if answer.Status != want {
			t.Errorf("%s: got %d %s, want %d", body, answer.Status, answer.Body, want)
		}
		if want == http.StatusOK {
			var p contract.Plan
			if read(answer, &p); !p.Accepted || p.Reason == "" || p.Expected == nil {
				t.Errorf("%s: got %+v, want an accepted plan", body, p)
			}
		}
	}
	if after := runs(); after != before {
		t.Errorf("got %d runs after the plans, want %d", after, before)
	}
}
