package runs_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestOutputIsAnEventOnce checks that each accepted chunk of a program is an event. A chunk
// that is sent again, because its response was lost, is the same event.
func TestOutputIsAnEventOnce(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	accepted, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", "/v1/runs", `{"image": "app", "command": ["x"]}`, 202)
	stage.Start(t, accepted.TaskID)
	envelope := stage.Envelope(t, accepted.TaskID)
	post := func(name, body string) {
		t.Helper()
		answer := stage.Call(t, http.MethodPost, "/v1/tasks/"+accepted.TaskID+"/"+name, body, "Authorization", "Bearer "+envelope.TaskToken)
		if answer.Status != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", name, answer.Status, answer.Body)
		}
	}
	post("started", `{"attempt":1,"workerId":"w1","sendsOutput":true}`)
	texts := []string{"first", "second", "third"}
	// The age in the first call of a chunk is published. The age in its repetition and invalid
	// ages are not.
	ages, lags := [][2]string{{"1499.6", "9000"}, {"null", "5"}, {"-3", `"x"`}}, []any{1.5, nil, nil}
	for i, text := range texts {
		for call := range 2 {
			post("logs", fmt.Sprintf(`{"attempt":1,"stream":"stderr","sequence":%d,"ageMs":%s,"data":%q}`, i+1, ages[i][call], base64.StdEncoding.EncodeToString([]byte(text))))
			stage.Clock.Advance(2 * time.Minute)
		}
	}
	ids := map[string]int{}
	for _, e := range stage.Notes(t) {
		ids[e.EventID]++
		l := e.Log
		if e.EventType != "pack_run.log" || l.Stream != "stderr" || string(l.Data) != texts[l.Sequence-1] || e.Actor.Subject != "worker/w1" ||
			e.Metrics["logStreamLagSeconds"] != lags[l.Sequence-1] || e.Job.ID != accepted.TaskID || e.Job.Attempt != 1 || e.IdempotencyKey != fmt.Sprintf("orch-pack_run.log-%s-1-%d", accepted.TaskID, l.Sequence) {
			t.Errorf("got %+v with %+v and log %+v, want a chunk of the worker w1 with lag %v", e, e.Job, l, lags[l.Sequence-1])
		}
	}
	if len(ids) != len(texts) {
		t.Errorf("got events %v, want %d, each stored twice", ids, len(texts))
	}
	for id, times := range ids {
		if times != 2 {
			t.Errorf("got event %s %d times, want it at each acceptance", id, times)
		}
	}
}
