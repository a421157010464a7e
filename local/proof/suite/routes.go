package suite

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func routes() []Test {
	return []Test{
		{Name: "inference task falls back to a pool of another model", Requires: []Capability{MockEngine}, Run: taskFallsBack},
		{Name: "model sends a share of its tasks to another model", Requires: []Capability{MockEngine}, Run: modelIsSplit},
		{Name: "model copies its tasks to another model", Requires: []Capability{MockEngine}, Run: modelIsShadowed},
	}
}

// taskFallsBack sends tasks to a pool whose engine does not answer, and to one whose context is too
// short. Both are answered by the fallback, which the explanation shows. Cycles and pools of runners
// are refused.
func taskFallsBack(c *Case) {
	mock := document{}
	spareModel, done := c.serve(served{kind: "mock", replica: mock, context: 4096}, "spare", 4)
	defer done()
	spare := strings.TrimPrefix(c.poolPath("mock-spare"), "/v1/pools/")
	for name, way := range map[string]struct {
		kind, prompt, reason string
		replica              document
		attempt              int
	}{
		"dead":  {"llamacpp", "tell a story", "error", document{"url": "https://engine.invalid"}, 1},
		"short": {"mock", strings.Repeat("word ", 200), "context", mock, 0},
	} {
		model := c.Batch("routed-" + name)
		send[contract.Model](c, http.MethodPost, "/v1/catalog/models", fmt.Sprintf(`{"id":%q,"engines":[%q],"context_tokens":64}`, model, way.kind), http.StatusCreated)
		engine := document{"kind": way.kind, "model": model, "slots": 1, "replicas": []document{way.replica}}
		path, pool := c.pool("routed-"+name, document{"engine": engine, "fallback": []document{{"pool": spare, "on": []string{way.reason}}}})
		accepted, _ := send[contract.TaskAccepted](c, http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"model_ref":%q,"prompt":%q,"max_tokens":5}`, model, way.prompt), http.StatusAccepted)
		if n := tokensOf(c.streamed(accepted.TaskID, "")); n != 5 {
			c.T.Errorf("%s: got %d tokens, want 5 of the fallback", name, n)
		}
		found := c.inState(accepted.TaskID, "Completed")
		if f := found.FellBack; found.Pool != spare || len(f) != 1 || f[0].From != pool || f[0].Reason != way.reason || f[0].Attempt != way.attempt || f[0].Message == "" {
			c.T.Errorf("%s: got pool %s after %+v, want %s because of %s", name, found.Pool, f, spare, way.reason)
		}
		x := outside.Get[contract.Explanation](c.Client, "/v1/runs/"+found.RunID+"/explain")
		if len(x.FellBack) != 1 || x.FellBack[0].Reason != way.reason {
			c.T.Errorf("%s: got the explanation %+v, want the fallback in it", name, x)
		}
		cycle := document{"engine": document{"kind": "mock", "model": spareModel, "slots": 4, "replicas": []document{mock}}, "fallback": []document{{"pool": pool, "on": []string{"error"}}}}
		p, _ := send[contract.Problem](c, http.MethodPut, c.poolPath("mock-spare"), string(outside.Encode(c.T, cycle)), http.StatusUnprocessableEntity)
		if p.Field != "fallback.0.pool" {
			c.T.Errorf("%s: got %+v of a cycle, want the field fallback.0.pool", name, p)
		}
		c.eventually("pool without tasks", func() bool { return outside.Get[contract.Pool](c.Client, path).Held == 0 })
		c.removePool(path)
		c.Call(http.MethodDelete, "/v1/catalog/models/"+model, "")
	}
	for field, fallback := range map[string]document{"fallback.0.on.0": {"pool": spare, "on": []string{"capacity"}}, "fallback.0.pool": {"pool": "default", "on": []string{"queue"}}} {
		body := document{"engine": document{"kind": "mock", "model": spareModel, "slots": 4, "replicas": []document{mock}}, "fallback": []document{fallback}}
		answer := c.Call(http.MethodPut, c.poolPath("refused"), string(outside.Encode(c.T, body)))
		if !strings.Contains(string(answer.Body), field) || answer.Status/100 != 4 {
			c.T.Errorf("got %d %s of %v, want a refusal of %s", answer.Status, answer.Body, fallback, field)
		}
	}
}

// modelIsSplit sends all tasks for a model to another model. A split with an unknown model is refused.
func modelIsSplit(c *Case) {
	mock := served{kind: "mock", replica: document{}, context: 4096}
	old, done := c.serve(mock, "split-old", 2)
	defer done()
	fresh, doneFresh := c.serve(mock, "split-new", 2)
	defer doneFresh()
	path := "/v1/catalog/models/" + old
	p, _ := send[contract.Problem](c, http.MethodPatch, path, `{"split":[{"model":"no-such-model","percent":5}]}`, http.StatusBadRequest)
	if p.Field != "split.0.model" {
		c.T.Errorf("got %+v of an unknown model, want the field split.0.model", p)
	}
	m, _ := send[contract.Model](c, http.MethodPatch, path, fmt.Sprintf(`{"split":[{"model":%q,"percent":100}]}`, fresh), http.StatusOK)
	if len(m.Split) != 1 || m.Split[0].Percent != 100 {
		c.T.Errorf("got %+v, want the split in the model", m)
	}
	task := c.ask(old, `,"max_tokens":3`)
	c.streamed(task, "")
	found := c.inState(task, "Completed")
	x := outside.Get[contract.Explanation](c.Client, "/v1/runs/"+found.RunID+"/explain")
	if !strings.HasSuffix(c.poolPath("mock-split-new"), found.Pool) || !strings.Contains(x.Message, "100 % for model "+old) {
		c.T.Errorf("got pool %s and %q, want the pool of the new model and the share in the explanation", found.Pool, x.Message)
	}
}

// modelIsShadowed copies all tasks for a model to another model. The client gets one answer, and pays for
// it alone.
func modelIsShadowed(c *Case) {
	mock := served{kind: "mock", replica: document{}, context: 4096}
	old, done := c.serve(mock, "shadow-old", 2)
	defer done()
	fresh, doneFresh := c.serve(mock, "shadow-new", 2)
	defer doneFresh()
	path := "/v1/catalog/models/" + old
	p, _ := send[contract.Problem](c, http.MethodPatch, path, fmt.Sprintf(`{"shadow":[{"model":%q,"percent":5}]}`, old), http.StatusBadRequest)
	if p.Field != "shadow.0.model" {
		c.T.Errorf("got %+v of the model itself, want the field shadow.0.model", p)
	}
	send[contract.Model](c, http.MethodPatch, path, fmt.Sprintf(`{"shadow":[{"model":%q,"percent":100}]}`, fresh), http.StatusOK)
	task := c.ask(old, `,"max_tokens":3`)
	if n := tokensOf(c.streamed(task, "")); n != 3 {
		c.T.Errorf("got %d tokens, want the 3 of one answer", n)
	}
	found := c.inState(task, "Completed")
	var x contract.Explanation
	c.eventually("end of the copy", func() bool {
		x = outside.Get[contract.Explanation](c.Client, "/v1/runs/"+found.RunID+"/explain")
		return strings.Contains(x.Message, "a copy of the task for model "+fresh) && !strings.Contains(x.Message, "no result yet")
	})
	if !strings.Contains(x.Message, "has 3 generated tokens (the task 3)") {
		c.T.Errorf("got %q, want a copy with 3 tokens", x.Message)
	}
	rows := map[string]int64{}
	for _, row := range outside.Get[contract.Usage](c.Client, "/v1/usage?by=model,key").Rows {
		if row.Model == fresh || row.Model == old {
			rows[row.Model+" "+strings.ReplaceAll(row.Key, "shadow traffic", "copies")] = row.Tasks
			if (row.Model == fresh) != (row.Key == "shadow traffic") {
				c.T.Errorf("got the usage %+v, want that of the copy apart", row)
			}
		}
	}
	if len(rows) != 2 || rows[fresh+" copies"] != 1 {
		c.T.Errorf("got the usage %v, want one task and one copy", rows)
	}
}
