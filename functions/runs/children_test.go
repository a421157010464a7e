package runs_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fanOut starts a run with a child for each item. It returns the id of the run.
func fanOut(t *testing.T, stage *apitest.Stage, parallel int, items ...string) string {
	t.Helper()
	who := port.Identity{Tenant: apitest.Tenant, Workspace: "main"}
	document := fmt.Sprintf(`{"image": "a", "items": [], "maxParallel": %d, "maxFailures": 100, "retryConfig": {"maxRetries": 0}}`, parallel)
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
	stage.Begin(t, r.TaskID)
	return r.ID
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
