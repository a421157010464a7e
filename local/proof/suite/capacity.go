package suite

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func capacity() []Test {
	needs := []Capability{Programs}
	return []Test{
		{Name: "pool is stored, changed and deleted", Run: poolIsStored},
		{Name: "pool limits and orders its runs as planned and explained", Requires: needs, Run: poolOfOne},
		{Name: "drained pool starts its queue when it is resumed", Requires: needs, Run: drainedPool},
		{Name: "full queue of a key applies its rule of overflow", Requires: needs, Run: keyOverflow},
		{Name: "scheduled run replaces the queued one of its key", Requires: needs, Run: firingReplaces},
		{Name: "queued runs of a pool are cancelled by a filter", Requires: needs, Run: bulkOfAPool},
		{Name: "a missing scope for a pool is 403", Requires: []Capability{OtherTokens}, Run: missingPoolScope},
	}
}

// poolPath returns the path of the test's pool with this name.
func (c *Case) poolPath(name string) string { return "/v1/pools/" + name + "-" + c.round }

// pool creates the test's pool with this name. It returns the pool's path and id.
func (c *Case) pool(name string, limits document) (path, id string) {
	c.T.Helper()
	path = c.poolPath(name)
	send[contract.Pool](c, http.MethodPut, path, string(outside.Encode(c.T, limits)), http.StatusCreated)
	return path, strings.TrimPrefix(path, "/v1/pools/")
}

// removePool deletes a pool whose runs have ended.
func (c *Case) removePool(path string) {
	if answer := c.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent && !c.T.Failed() {
		c.T.Errorf("DELETE %s: got %d %s, want 204", path, answer.Status, answer.Body)
	}
}

// inUse waits until all processes of the deployment use the changed pool.
func (c *Case) inUse(p contract.Pool) {
	c.T.Helper()
	c.eventually("second after the change of the pool", func() bool { return c.soon("/healthz", 0).After(p.UpdatedAt.Add(time.Second)) })
}

// holder starts a run that holds its slots until release is called.
func (c *Case) holder(with document) (accepted contract.RunAccepted, release func()) {
	c.T.Helper()
	hold, d := scripts.Pipe(c.T), script(holdScript)
	d = d.with("env", document{"HOLD": hold}).with("policy", document{"cancelGraceSeconds": 10})
	for name, value := range with {
		d = d.with(name, value)
	}
	accepted = c.startProgram(d)
	c.Running(accepted.TaskID)
	return accepted, func() { scripts.Release(c.T, hold) }
}

// queue starts a run and waits until it is queued.
func (c *Case) queue(d document) contract.RunAccepted {
	c.T.Helper()
	accepted := c.startProgram(d)
	if status := c.Await(accepted.TaskID, func(s contract.Status) bool { return s.QueuePosition != nil }); status.QueuePosition == nil {
		c.T.Fatalf("got %+v, want a queued run", status)
	}
	return accepted
}

// wantFull checks that a request is refused because a queue is full.
func (c *Case) wantFull(d document) {
	c.T.Helper()
	if planned := c.plan(d); planned.Accepted || planned.Reason != "queue_full" {
		c.T.Errorf("got the plan %+v, want a refusal because of a full queue", planned)
	}
	p, header := send[contract.Problem](c, http.MethodPost, "/v1/runs", string(outside.Encode(c.T, d)), http.StatusTooManyRequests)
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	backoff, backoffErr := strconv.Atoi(header.Get("X-Backoff-Ms"))
	if err != nil || backoffErr != nil || seconds < 1 || backoff < 1 || backoff > seconds*1000 || p.Code != "ADMISSION_REJECT" {
		c.T.Errorf("got %s with Retry-After %q and X-Backoff-Ms %q, want ADMISSION_REJECT with both", p.Code, header.Get("Retry-After"), header.Get("X-Backoff-Ms"))
	}
}

func poolIsStored(c *Case) {
	path := c.poolPath("stored")
	made, header := send[contract.Pool](c, http.MethodPut, path, `{"limit": 2, "queueLimit": 3}`, http.StatusCreated)
	if made.Version != 1 || made.Limit != 2 || made.QueueLimit != 3 || made.Draining || header.Get("Location") != path {
		c.T.Errorf("got %+v at %s, want version 1 with its limits at %s", made, header.Get("Location"), path)
	}
	same, again := send[contract.Pool](c, http.MethodPut, path, `{"limit": 2, "queueLimit": 3}`, http.StatusOK)
	if same.Version != 1 || again.Get("ETag") != header.Get("ETag") {
		c.T.Errorf("got version %d, ETag %s for the same limits, want 1, %s", same.Version, again.Get("ETag"), header.Get("ETag"))
	}
	send[contract.Pool](c, http.MethodPut, path, `{"limit": 0}`, http.StatusOK, "If-Match", header.Get("ETag"))
	send[contract.Problem](c, http.MethodPut, path, `{"limit": 4}`, http.StatusPreconditionFailed, "If-Match", header.Get("ETag"))
	for body, field := range map[string]string{`{}`: "limit", `{"limit": -1}`: "limit", `{"limit": 1, "queueLimit": -1}`: "queueLimit"} {
		if p, _ := send[contract.Problem](c, http.MethodPut, path, body, http.StatusBadRequest); p.Field != field {
			c.T.Errorf("%s: got the field %q, want %s", body, p.Field, field)
		}
	}
	send[contract.Problem](c, http.MethodPost, path+"/reload", "", http.StatusConflict)
	pools := outside.Get[contract.PoolList](c.Client, "/v1/pools").Pools
	for _, id := range []string{"default", made.ID} {
		if !slices.ContainsFunc(pools, func(p contract.Pool) bool { return p.ID == id }) {
			c.T.Errorf("got the pools %+v, want %s among them", pools, id)
		}
	}
	c.removePool(path)
	send[contract.Problem](c, http.MethodGet, path, "", http.StatusNotFound)
	unknown := string(outside.Encode(c.T, document{"image": "a", "pool": made.ID}))
	for _, at := range []string{"/v1/runs", "/v1/runs:plan"} {
		if p, _ := send[contract.Problem](c, http.MethodPost, at, unknown, http.StatusUnprocessableEntity); p.Field != "pool" {
			c.T.Errorf("%s: got the field %q for an unknown pool, want pool", at, p.Field)
		}
	}
}

// poolOfOne fills a pool and queues a run of each priority, each ahead of the earlier ones.
func poolOfOne(c *Case) {
	path, id := c.pool("one", document{"limit": 1, "queueLimit": 3})
	first, release := c.holder(document{"pool": id})
	second, releaseSecond := document(nil), func() {}
	queued := map[string]contract.RunAccepted{}
	for _, priority := range []string{"batch", "normal", "interactive"} {
		d := script("true").with("pool", id).with("priority", priority)
		if priority == "interactive" { // the run keeps the second slot
			hold := scripts.Pipe(c.T)
			d["command"], d["env"] = []string{"-c", holdScript}, document{"HOLD": hold}
			second, releaseSecond = d, func() { scripts.Release(c.T, hold) }
		}
		before := outside.Get[contract.Pool](c.Client, path)
		// While the platform delays starts, no change would start the run at once.
		planned := contract.Plan{}
		c.eventually("change in the plan", func() bool { planned = c.plan(d); return planned.Change != nil })
		if after := outside.Get[contract.Pool](c.Client, path); !reflect.DeepEqual(after, before) {
			c.T.Errorf("got %+v after a plan, want %+v", after, before)
		}
		queued[priority] = c.queue(d)
		x := contract.Explanation{}
		c.eventually("change", func() bool { x = c.explain(queued[priority]); return x.Change != nil })
		if !planned.Accepted || planned.Reason != x.Reason || !reflect.DeepEqual(planned.Position, x.Position) || !reflect.DeepEqual(planned.Change, x.Change) {
			c.T.Errorf("%s: got the plan %+v, want what happened: %+v", priority, planned, x)
		}
		full := c.limitOf(x.RunReasons, "pool")
		if x.Reason != "pool_full" || x.Position == nil || *x.Position != 0 || full.Name != id || full.Used != 1 || full.Allowed != 1 || x.Expected == nil {
			c.T.Errorf("%s: got %+v, want the next run of a full pool", priority, x)
		}
		if len(full.Holders) != 1 || full.Holders[0].RunID != first.RunID || full.Holders[0].State != "Running" {
			c.T.Errorf("%s: got the holders %+v, want %s", priority, full.Holders, first.RunID)
		}
		if x.Change.Kind != "raise_limit" || x.Change.Name != id || *x.Change.From != 1 || *x.Change.To != 2 {
			c.T.Errorf("%s: got the change %+v, want a limit of 2", priority, x.Change)
		}
	}
	c.wantFull(second)
	// The change commits the grant before its response.
	if p, _ := send[contract.Pool](c, http.MethodPut, path, `{"limit": 2, "queueLimit": 3}`, http.StatusOK); p.Held != 2 || p.Queued != 2 {
		c.T.Errorf("got %d held slots and %d queued runs of the raised limit, want 2 and 2", p.Held, p.Queued)
	}
	c.Running(queued["interactive"].TaskID)
	lowered, _ := send[contract.Pool](c, http.MethodPut, path, `{"limit": 1, "queueLimit": 3}`, http.StatusOK)
	c.inUse(lowered)
	release()
	c.ended(first)
	if p := outside.Get[contract.Pool](c.Client, path); p.Held != 1 || p.Queued != 2 {
		c.T.Errorf("got %d held slots and %d queued runs of the lowered limit, want 1 and 2", p.Held, p.Queued)
	}
	releaseSecond()
	interactive, normal, batch := c.ended(queued["interactive"]), c.ended(queued["normal"]), c.ended(queued["batch"])
	if normal.StartedAt.Before(interactive.EndedAt) || batch.StartedAt.Before(normal.EndedAt) {
		c.T.Errorf("got starts at %s and %s after %s, want normal before batch, one at a time", normal.StartedAt, batch.StartedAt, interactive.EndedAt)
	}
	if x := c.explain(queued["normal"]); x.Reason != "succeeded" || x.Prediction == nil || x.Prediction.ErrorSeconds == nil {
		c.T.Errorf("got %+v at the end, want the prediction with its error", x)
	}
	c.removePool(path)
}

func drainedPool(c *Case) {
	path, id := c.pool("drained", document{"limit": 1})
	first, release := c.holder(document{"pool": id})
	next := c.queue(script("true").with("pool", id))
	drained, _ := send[contract.Pool](c, http.MethodPost, path+"/drain", "", http.StatusAccepted)
	if !drained.Draining || drained.Held != 1 {
		c.T.Errorf("got %+v, want a draining pool with its holder", drained)
	}
	if answer := c.Call(http.MethodDelete, path, ""); answer.Status != http.StatusConflict {
		c.T.Errorf("got %d %s for the deletion of a pool with runs, want 409", answer.Status, answer.Body)
	}
	c.inUse(drained)
	release()
	if run := c.ended(first); run.State != "Completed" {
		c.T.Errorf("got %+v, want the holder's end", run)
	}
	last := c.queue(script("true").with("pool", id))
	h := outside.Get[contract.PoolHealth](c.Client, path+"/health")
	if !h.Live || h.Ready || !h.Draining || h.Held != 0 || h.Queued != 2 {
		c.T.Errorf("got %+v, want a pool that is not ready with 2 queued runs", h)
	}
	x := contract.Explanation{}
	c.eventually("change", func() bool { x = c.explain(next); return x.Change != nil })
	if x.Reason != "pool_draining" || x.Change.Kind != "resume_pool" || x.Change.Name != id {
		c.T.Errorf("got %+v, want the drain and its end", x)
	}
	if p, _ := send[contract.Pool](c, http.MethodPost, path+"/resume", "", http.StatusOK); p.Draining || p.Held != 1 || p.Queued != 1 {
		c.T.Errorf("got %+v after the drain, want the next run started and one queued", p)
	}
	for _, accepted := range []contract.RunAccepted{next, last} {
		if run := c.ended(accepted); run.State != "Completed" {
			c.T.Errorf("got %+v, want Completed after the drain", run)
		}
	}
	// A drain with a deadline ends the attempts that still hold a slot.
	held, _ := c.holder(document{"pool": id})
	send[contract.Pool](c, http.MethodPost, path+"/drain", `{"deadlineSeconds": 1}`, http.StatusAccepted)
	c.eventually("next attempt in the queue", func() bool {
		h = outside.Get[contract.PoolHealth](c.Client, path+"/health")
		return h.Queued == 1
	})
	if h.Drain == nil || h.Drain.Phase != "drained" || h.Drain.Runs != 0 || h.Drain.Deadline.IsZero() {
		c.T.Errorf("got %+v, want a drained pool", h.Drain)
	}
	waits := c.task(held.RunID)
	if waits.Cancel != nil || waits.State != "Pending" || waits.Attempt != 1 {
		c.T.Errorf("got %s in attempt %d with the cancel request %+v, want Pending after the first one", waits.State, waits.Attempt, waits.Cancel)
	}
	c.cancelRun(held.RunID)
	c.removePool(path)
}

// keyOverflow fills the queue of a key for each rule: one run holds the only slot, one is
// queued, and one more arrives.
func keyOverflow(c *Case) {
	path, id := c.pool("overflow", document{"limit": 0})
	for _, rule := range []string{"reject", "keep_newest", "keep_oldest"} {
		key := rule + "-" + c.round
		with := document{"pool": id, "concurrencyKey": key, "concurrency": document{"limit": 1, "queueLimit": 1, "overflow": rule}}
		d := script("true")
		for name, value := range with {
			d = d.with(name, value)
		}
		first, release := c.holder(with)
		queued := c.queue(d)
		x := c.explain(queued)
		if of := c.limitOf(x.RunReasons, "key"); x.Reason != "key_full" || of.Name != key || of.Used != 1 || of.Allowed != 1 || of.Queued != 1 ||
			x.Change == nil || x.Change.Kind != "end_run" || x.Change.Name != first.RunID {
			c.T.Errorf("%s: got %+v, want a full key with its holder %s", rule, x, first.RunID)
		}
		lost, by := contract.RunAccepted{}, contract.RunAccepted{}
		switch rule {
		case "reject":
			c.wantFull(d)
		case "keep_newest":
			if planned := c.plan(d); !planned.Accepted || planned.Reason != "key_full" || planned.Position == nil || *planned.Position != 0 {
				c.T.Errorf("got the plan %+v, want the place of the replaced run", planned)
			}
			lost, by = queued, c.startProgram(d)
			queued = by
		case "keep_oldest":
			if planned := c.plan(d); planned.Reason != "key_overflowed" {
				c.T.Errorf("got the plan %+v, want a skipped run", planned)
			}
			lost, by = c.startProgram(d), queued
		}
		if lost.RunID != "" {
			run := c.ended(lost)
			if run.State != "Completed" || !run.Skipped || run.Machine != nil || run.Overflowed == nil || run.Overflowed.Rule != rule || run.Overflowed.By != by.RunID {
				c.T.Errorf("%s: got %+v with %+v, want a skipped run that names %s", rule, run, run.Overflowed, by.RunID)
			}
			if x := c.explain(lost); x.Reason != "key_overflowed" || !strings.Contains(x.Message, by.RunID) {
				c.T.Errorf("%s: got %s: %s; want the overflow with %s", rule, x.Reason, x.Message, by.RunID)
			}
		}
		release()
		if one, two := c.ended(first), c.ended(queued); two.State != "Completed" || two.Skipped || two.StartedAt.Before(one.EndedAt) {
			c.T.Errorf("%s: got %s from %s, want Completed after %s", rule, two.State, two.StartedAt, one.EndedAt)
		}
	}
	c.removePool(path)
}

// bulkOfAPool cancels the queued runs of a job, but not the run that holds the slot.
func bulkOfAPool(c *Case) {
	path, id := c.pool("bulk", document{"limit": 1})
	first, release := c.holder(document{"pool": id})
	job := c.job("queued", script("true").with("pool", id))
	want := map[string]bool{}
	for range 2 {
		accepted := c.runJob(job, nil)
		c.Await(accepted.TaskID, func(s contract.Status) bool { return s.QueuePosition != nil })
		want[accepted.RunID] = true
	}
	filter := fmt.Sprintf(`"filter": {"jobId": %q, "states": ["Pending"]}`, jobID(job))
	for _, step := range []struct{ members, result, state string }{
		{filter + `, "dryRun": true`, "selected", "Pending"}, {filter, "cancelled", "Cancelled"},
	} {
		runs := c.bulk("/v1/runs:cancel", step.members)
		for _, r := range runs {
			if !want[r.RunID] || r.Result != step.result || r.State != step.state {
				c.T.Errorf("got %+v, want %s of a queued run as %s", r, step.result, step.state)
			}
		}
		if queued := outside.Get[contract.Pool](c.Client, path).Queued; len(runs) != len(want) || (queued == len(want)) != (step.result == "selected") {
			c.T.Errorf("%s: got %d runs and %d queued ones, want %d, and changes without a dry run alone", step.members, len(runs), queued, len(want))
		}
	}
	release()
	if run := c.ended(first); run.State != "Completed" {
		c.T.Errorf("got %s, want the holder Completed", run.State)
	}
	c.removePool(path)
}

// missingPoolScope tries to change pools with a token that may only read, and reads them as
// another tenant.
func missingPoolScope(c *Case) {
	path, id := c.pool("scoped", document{"limit": 1})
	reader, stranger := c.as(c.Target.Others.Reader), c.as(c.Target.Others.Stranger)
	for _, call := range []struct{ method, path, body string }{
		{http.MethodPut, "", `{"limit": 2}`},
		{http.MethodPut, "-new", `{"limit": 2}`},
		{http.MethodDelete, "", ""},
		{http.MethodPost, "/drain", ""},
		{http.MethodPost, "/resume", ""},
		{http.MethodPost, "/reload", ""},
	} {
		answer := reader.Call(call.method, path+call.path, call.body)
		if p := answer.Problem(c.T); answer.Status != http.StatusForbidden || p.Code != "MISSING_SCOPE" || !strings.Contains(p.Detail, "admin") {
			c.T.Errorf("%s %s with runs:read: got %d %s, want 403 for admin", call.method, call.path, answer.Status, answer.Body)
		}
		if call.method == http.MethodPut {
			continue // it creates a pool of the other tenant
		}
		if answer := stranger.Call(call.method, path+call.path, call.body); answer.Status != http.StatusNotFound {
			c.T.Errorf("%s %s as another tenant: got %d %s, want 404", call.method, call.path, answer.Status, answer.Body)
		}
	}
	for _, read := range []string{"", "/health"} {
		if answer := stranger.Call(http.MethodGet, path+read, ""); answer.Status != http.StatusNotFound {
			c.T.Errorf("GET %s as another tenant: got %d %s, want 404", read, answer.Status, answer.Body)
		}
	}
	if p := outside.Get[contract.Pool](reader, path); p.ID != id || p.Limit != 1 || p.Version != 1 || p.Draining {
		c.T.Errorf("got %+v afterwards, want the pool unchanged", p)
	}
	c.removePool(path)
}
