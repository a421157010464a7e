package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// pool reads a pool.
func (h *home) pool(t *testing.T, id string) contract.Pool {
	t.Helper()
	p, _ := apitest.Decoded[contract.Pool](t, h.Stage, http.MethodGet, "/v1/pools/"+id, "", 200, bearer...)
	return p
}

func TestPoolsAreListed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.Admit(t, h.Accept(t))
	apitest.Decoded[contract.Pool](t, h.Stage, http.MethodPut, "/v1/pools/reports", `{"limit": 0}`, 201, bearer...)
	h.signedIn(t, ownerToken).page("/console/pools", `href="./pools/default"`, "1 of 2", `href="./pools/reports"`, "0, no limit", "Open", "sortie pools list", `aria-current="page">Pools`)
}

// TestPoolShowsHoldersAndItsQueue fills the two slots of the default pool.
func TestPoolShowsHoldersAndItsQueue(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/pools/default", "No run holds a slot", "No run waits", "The pool keeps none")
	var ids []string
	for range 9 {
		id := h.Accept(t)
		h.Admit(t, id)
		ids = append(ids, id)
		h.Clock.Advance(time.Second)
	}
	text := b.page("/console/pools/default", "2 of 2", "Full", "9 of 10", "sortie pools show default")
	at := -1
	for n, id := range ids {
		next := strings.Index(text, `data-run="`+h.Run(t, id).ID+`"`)
		if next <= at {
			t.Errorf("got run %d before the one ahead of it", n+1)
		}
		at = next
		if position := fmt.Sprintf(`data-label="position">%d<`, n-1); n >= 2 && !strings.Contains(text, position) {
			t.Errorf("got no %s", position)
		}
	}
	if n := strings.Count(text, "9 of 10: "); n != 5 {
		t.Errorf("got %d expected starts, want 5", n)
	}
}

func TestPoolIsDrainedResumedAndLimited(t *testing.T) {
	t.Parallel()
	h := setup(t)
	apitest.Decoded[contract.Pool](t, h.Stage, http.MethodPut, "/v1/pools/reports", `{"limit": 4, "queueLimit": 9, "warm": {"max": 3, "min": 1, "aheadSeconds": 60}, "runner": "fly", "settings": {"apps": ["app-a"]}}`, 201, bearer...)
	b := h.signedIn(t, ownerToken)
	const path = "/console/pools/reports"
	b.page(path, "1 to 3", "60 s ahead", "app-a", `name="limit" min="0" value="4"`, path[len("/console"):]+`/drain"`)
	done := func(action, want string, fields ...string) {
		t.Helper()
		if answer := b.post(path+"/"+action, fields...); answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != path+"?done="+want {
			t.Errorf("%s: got %d %s to %q", action, answer.Status, mainPart(answer.Body), answer.Header.Get("Location"))
		}
	}
	done("drain", "pool-draining", "deadlineSeconds", "90")
	if p := h.pool(t, "reports"); !p.Draining || p.DrainBy.IsZero() {
		t.Errorf("got %+v, want a drain with a deadline", p)
	}
	b.page(path+"?done=pool-draining", "The pool drains", "Draining", "Phase: ", path[len("/console"):]+`/resume"`)
	done("resume", "pool-resumed")
	if h.pool(t, "reports").Draining {
		t.Error("got a drain after the resume")
	}
	before := h.pool(t, "reports")
	done("limits", "pool-limits", "limit", "7", "queueLimit", "")
	after := h.pool(t, "reports")
	if after.Limit != 7 || after.QueueLimit != 9 || after.Version != before.Version+1 || after.Warm == nil || *after.Warm != *before.Warm || len(after.Settings.Apps) != 1 {
		t.Errorf("got %+v, want a change of the limit alone of %+v", after, before)
	}
	for _, wrong := range [][]string{{"limits", "limit", "many"}, {"limits", "limit", "-1"}, {"drain", "deadlineSeconds", "1.5"}, {"reload", "deadlineSeconds", "x"}} {
		if answer := b.post(path+"/"+wrong[0], wrong[1:]...); answer.Status != http.StatusBadRequest {
			t.Errorf("%v: got %d, want 400", wrong, answer.Status)
		}
	}
	if answer := b.post(path + "/reload"); answer.Status < 400 || answer.Status >= 500 {
		t.Errorf("got %d for the reload of a pool without an engine, want a refusal", answer.Status)
	}
}

func TestPoolsNeedScopeAndTenant(t *testing.T) {
	t.Parallel()
	h := setup(t)
	apitest.Decoded[contract.Pool](t, h.Stage, http.MethodPut, "/v1/pools/reports", `{"limit": 4}`, 201, bearer...)
	reader, other := h.signedIn(t, readerToken), h.signedIn(t, otherToken)
	if text := reader.page("/console/pools/reports"); strings.Contains(text, "/drain") || strings.Contains(text, "/limits") {
		t.Error("got an action for a reader")
	}
	if text := other.page("/console/pools"); strings.Contains(text, "reports") {
		t.Error("got a pool of another tenant")
	}
	if answer := other.get("/console/pools/reports"); answer.Status != http.StatusNotFound {
		t.Errorf("got %d for a pool of another tenant, want 404", answer.Status)
	}
	for _, action := range []string{"drain", "resume", "reload", "limits"} {
		reader.page("/console/pools")
		if answer := reader.post("/console/pools/reports/"+action, "limit", "9"); answer.Status != http.StatusForbidden {
			t.Errorf("%s of a reader: got %d, want 403", action, answer.Status)
		}
		other.page("/console/pools")
		if answer := other.post("/console/pools/reports/"+action, "limit", "9"); answer.Status != http.StatusNotFound {
			t.Errorf("%s of another tenant: got %d, want 404", action, answer.Status)
		}
	}
	if p := h.pool(t, "reports"); p.Draining || p.Limit != 4 || p.Version != 1 {
		t.Errorf("got %+v, want the pool as it was", p)
	}
	for _, text := range []string{"%3Cscript%3Ealert(1)%3C%2Fscript%3E", "%2e%2e%2fruns", "a%2fb"} {
		if answer := reader.get("/console/pools/" + text); answer.Status < 400 || strings.Contains(answer.Body, "<script>alert") {
			t.Errorf("%s: got %d", text, answer.Status)
		}
	}
}
