package runs_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fanOut starts a run with a child for each item. It returns the id of the run.
func fanOut(t *testing.T, stage *apitest.Stage, parallel int, items ...string) string {
	t.Helper()
	return fanOutIn(t, stage, "default", parallel, items...)
}

func fanOutIn(t *testing.T, stage *apitest.Stage, pool string, parallel int, items ...string) string {
	t.Helper()
	who := port.Identity{Tenant: apitest.Tenant, Workspace: "main"}
	document := fmt.Sprintf(`{"image": "a", "pool": %q, "items": [], "maxParallel": %d, "maxFailures": 100, "retryConfig": {"maxRetries": 0}}`, pool, parallel)
	if _, _, err := stage.System.Jobs.Put(t.Context(), who, "each", []byte(document), change.Precondition{}); err != nil {
		t.Fatal(err)
	}
	values := make([]spec.Value, len(items))
	for i, item := range items {
		values[i] = spec.Value(fmt.Sprintf("%q", item))
	}
	r, _, err := stage.System.Jobs.RunJob(t.Context(), jobs.RunRequest{Identity: who, JobID: "each", Items: values})
	if err != nil {
		t.Fatal(err)
	}
	stage.Admit(t, r.TaskID)
	if !stage.Run(t, r.TaskID).AwaitsKey() {
		stage.Launch(t, r.TaskID)
	}
	return r.ID
}

func explanation(t *testing.T, stage *apitest.Stage, id string) contract.Explanation {
	t.Helper()
	x, _ := apitest.Decoded[contract.Explanation](t, stage, http.MethodGet, "/v1/runs/"+url.PathEscape(id)+"/explain", "", http.StatusOK)
	return x
}

// TestChildrenAreExplained explains a run with children, an active child, and one that has no run
// yet.
func TestChildrenAreExplained(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	id := fanOut(t, stage, 2, "a", "b", "c", "d", "e")
	child := stage.Run(t, id+".0").TaskID
	stage.Start(t, child)
	stage.Clock.Advance(time.Minute)
	stage.Report(t, child, contract.Callback{Status: contract.StatusSuccess})
	stage.Settle(t, child)
	x := explanation(t, stage, id)
	if x.Reason != "children_running" || !strings.Contains(x.Message, "1 of 5 succeeded, 2 running, 2 waiting; 2 wait until one of the 2 active children ends (maxParallel)") ||
		!strings.Contains(x.Message, "at the pace so far, the last one ends at about 2026-01-02T03:09:05Z") {
		t.Errorf("got %+v, want what the children wait for, and the end", x.RunReasons)
	}
	if limit := x.Limits[len(x.Limits)-1]; limit.Kind != "children" || limit.Name != id || limit.Used != 2 || limit.Allowed != 2 || limit.Queued != 2 {
		t.Errorf("got limit %+v, want that of the children", limit)
	}
	if x := explanation(t, stage, id+".1"); x.State != "Pending" || !strings.Contains(x.Message, "; the run is child 1 of run "+id) {
		t.Errorf("got %+v, want the place of the child", x)
	}
	if x := explanation(t, stage, id+".4"); x.Reason != "awaits_turn" || x.Position == nil || *x.Position != 1 || !strings.Contains(x.Message, "one run is ahead") || x.RunID != id+".4" {
		t.Errorf("got %+v, want a turn among the children", x)
	}
	for _, unknown := range []string{id + ".5", id + ".04", id + ".-1", id + ".10000", ".1", "no-run.1", id + ".1.1"} {
		if answer := stage.Call(t, http.MethodGet, "/v1/runs/"+unknown+"/explain", ""); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d %s, want 404", unknown, answer.Status, answer.Body)
		}
	}
}

// TestRunsWithChildrenWaitForEachOther starts more runs of a job than may have active children. A
// run waits until another one ends.
func TestRunsWithChildrenWaitForEachOther(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	var ids []string
	for range fan.MaxParents + 1 {
		ids = append(ids, fanOut(t, stage, 1, "a", "b"))
	}
	last := ids[fan.MaxParents]
	if x := explanation(t, stage, last); x.Reason != "key_full" || !strings.Contains(x.Message, "10 of 10 slots of key children:each are held") {
		t.Fatalf("got %+v, want a run that waits for another one", x.RunReasons)
	}
	if _, err := stage.System.Cancel(t.Context(), port.Identity{Tenant: apitest.Tenant}, ids[3], ""); err != nil {
		t.Fatal(err)
	}
	stage.Settle(t, stage.Run(t, ids[3]).TaskID)
	stage.Launch(t, stage.Run(t, last).TaskID)
	if r := stage.Run(t, last); r.Fan == nil || r.Fan.Started != 1 {
		t.Errorf("got %s, want active children after the end of another run", r.State)
	}
}

// TestChildrenLeaveRoomInTheQueue starts a run with more children than the queue of their pool may
// have. Half of the queue is left for other runs, and the parent creates the rest later.
func TestChildrenLeaveRoomInTheQueue(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	who, most := port.Identity{Tenant: apitest.Tenant, Workspace: "main"}, 6
	if _, _, err := stage.System.Pools.Put(t.Context(), who, "small", pools.Definition{Limit: 1, QueueLimit: &most}, change.Precondition{}); err != nil {
		t.Fatal(err)
	}
	id := fanOutIn(t, stage, "small", 20, strings.Split("abcdefghij", "")...)
	created := func() (n int) {
		for _, c := range childPage(t, stage, id, "").Children {
			if c.RunID != "" {
				n++
			}
		}
		return n
	}
	if n := created(); n != 4 { // one gets a slot
		t.Errorf("got %d children, want a slot and half of the queue", n)
	}
	for range 2 {
		other := accepted(t, post(t, stage, "/v1/runs", `{"image": "a", "pool": "small"}`), http.StatusAccepted)
		if _, err := stage.System.Cancel(t.Context(), who, other.TaskID, ""); err != nil {
			t.Fatal(err)
		}
	}
	for number := range 10 { // the parent creates the others when there is room
		child := stage.Run(t, fmt.Sprintf("%s.%d", id, number)).TaskID
		stage.Start(t, child)
		stage.Clock.Advance(time.Minute)
		stage.Report(t, child, contract.Callback{Status: contract.StatusSuccess})
		stage.Settle(t, child)
		_ = stage.System.Sweep(t.Context(), 0) // an error names children that cannot be created yet
	}
}

// TestChildrenAreKeptForTheirParent ends a child long before its parent. Its record is kept until
// the parent has ended, and a day longer.
func TestChildrenAreKeptForTheirParent(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	id := fanOut(t, stage, 1, "a", "b")
	end := func(number int) {
		t.Helper()
		child := stage.Run(t, fmt.Sprintf("%s.%d", id, number)).TaskID
		stage.Start(t, child)
		stage.Report(t, child, contract.Callback{Status: contract.StatusError, Error: "no page " + fmt.Sprint(number)})
		stage.Settle(t, child)
	}
	pass := func(days int) {
		t.Helper()
		stage.Clock.Advance(time.Duration(days) * 24 * time.Hour)
		for range 3 { // also what was delayed
			stage.Clock.Advance(time.Minute)
			if err := stage.System.Sweep(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	failed := func() bool {
		first := childPage(t, stage, id, "").Children[0]
		return first.State == "failed" && first.Fault != nil && strings.Contains(first.Fault.Message, "no page 0")
	}
	end(0)
	for range 3 {
		pass(8)
		if !failed() {
			t.Fatal("got a child without a record before its parent ended")
		}
	}
	end(1)
	stage.Settle(t, stage.Run(t, id).TaskID)
	if state := stage.Run(t, id).State; !state.Terminal() || !failed() {
		t.Fatalf("got a parent in %s, want one that has ended with its children", state)
	}
	pass(2)
	pass(1)
	if first := childPage(t, stage, id, "").Children[0]; first.State != "failed" || first.RunID != "" {
		t.Errorf("got %+v, want a record that has expired", first)
	}
}

func childPage(t *testing.T, stage *apitest.Stage, id, query string) contract.RunChildren {
	t.Helper()
	page, _ := apitest.Decoded[contract.RunChildren](t, stage, http.MethodGet, "/v1/runs/"+url.PathEscape(id)+"/children"+query, "", http.StatusOK)
	return page
}

func TestChildrenAreListedInOrder(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	id := fanOut(t, stage, 2, "a", "b", "c\u202e<b>", "d", "e")
	for n, status := range []string{contract.StatusSuccess, contract.StatusError} {
		child := stage.Run(t, fmt.Sprintf("%s.%d", id, n)).TaskID
		stage.Start(t, child)
		stage.Report(t, child, contract.Callback{Status: status, Error: "no such page"})
		stage.Settle(t, child)
	}
	all := childPage(t, stage, id, "")
	var got []string
	for _, c := range all.Children {
		got = append(got, fmt.Sprintf("%d %s %s %s %d %t", c.Index, c.Item, c.State, c.RunState, c.Attempt, c.RunID != "" && c.Fault != nil))
	}
	want := []string{"0 a succeeded Completed 1 false", "1 b failed Failed 1 true", "2 c\u202e<b> running Pending 0 false", "3 d running Pending 0 false", "4 e waiting  0 false"}
	if diff := cmp.Diff(want, got); diff != "" || all.NextCursor != "" || all.Counts == nil || all.Counts.Total != 5 {
		t.Errorf("got %+v (-want +got):\n%s", all, diff)
	}
	for query, want := range map[string]string{ // the indexes, and the cursor
		"?state=running": "23 ", "?state=running&limit=1": "2 3", "?state=running&limit=1&cursor=3": "3 ", "?state=waiting": "4 ", "?state=skipped": " ",
		"?limit=2": "01 2", "?limit=3&cursor=2": "234 ", "?limit=1000&cursor=9999": " ", "?cursor=": "01234 ",
	} {
		page, got := childPage(t, stage, id, query), ""
		for _, c := range page.Children {
			got += fmt.Sprint(c.Index)
		}
		if got += " " + page.NextCursor; got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// TestHostileListsOfChildren checks queries that no page has, and runs without children.
func TestHostileListsOfChildren(t *testing.T) {
	t.Parallel()
	stage := setup(t, false)
	id := fanOut(t, stage, 1, "a", "b")
	for query, field := range map[string]string{
		"cursor=-1": "cursor", "cursor=0": "cursor", "cursor=01": "cursor", "cursor=10000": "cursor", "cursor=1e3": "cursor", "cursor=1%00": "cursor",
		"cursor=99999999999999999999": "cursor", "cursor=../../x": "cursor", "limit=0": "limit", "limit=1001": "limit", "limit=99999999999999999999": "limit",
		"limit=-5": "limit", "state=": "state", "state=Running": "state", "state=waiting%2Crunning": "state", "all=true": "all",
	} {
		answer := stage.Call(t, http.MethodGet, "/v1/runs/"+url.PathEscape(id)+"/children?"+query, "")
		if p := problem(t, answer); answer.Status != http.StatusBadRequest || p.Field != field {
			t.Errorf("%s: got %d %s, want 400 for %s", query, answer.Status, answer.Body, field)
		}
	}
	for _, path := range []string{"no-run", id + ".7", id + ".", "%00"} {
		if answer := stage.Call(t, http.MethodGet, "/v1/runs/"+path+"/children", ""); answer.Status != http.StatusNotFound && answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d %s, want 404", path, answer.Status, answer.Body)
		}
	}
	if page := childPage(t, stage, id+".0", ""); len(page.Children) != 0 || page.Counts != nil {
		t.Errorf("got %+v of a child, want no children", page)
	}
}
