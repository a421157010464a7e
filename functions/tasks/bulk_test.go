package tasks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	cancelRuns = "/v1/runs:cancel"
	retryRuns  = "/v1/runs:retry"
)

// results returns the tasks of an answer with their results, in order.
func results(answer contract.BulkAnswer) string {
	var texts []string
	for _, r := range answer.Runs {
		texts = append(texts, r.TaskID+" "+r.Result)
	}
	return strings.Join(texts, ", ")
}

func TestBulkCancelSelectsRunsThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	failed := stage.Failure(t, "no")
	stage.Clock.Advance(time.Second)
	running := stage.Accept(t)
	stage.Start(t, running)
	stage.Clock.Advance(time.Second)
	pending := stage.Accept(t)

	body := `{"filter":{"kind":"export"},"reason":"wrong collection"%s}`
	dry := post[contract.BulkAnswer](t, stage, cancelRuns, fmt.Sprintf(body, `,"dryRun":true`), 200)
	if want := pending + " selected, " + running + " selected"; results(dry) != want || !dry.DryRun {
		t.Errorf("got %s in a dry run, want %s", results(dry), want)
	}
	if r := stage.Run(t, running); r.Cancel != nil || stage.Run(t, pending).State != run.Pending {
		t.Errorf("got %+v after a dry run, want no change", r.Cancel)
	}
	done := post[contract.BulkAnswer](t, stage, cancelRuns, fmt.Sprintf(body, ""), 200)
	if want := pending + " cancelled, " + running + " requested"; results(done) != want || done.NextCursor != "" {
		t.Errorf("got %s and cursor %q, want %s and no more", results(done), done.NextCursor, want)
	}
	if r := stage.Run(t, running); r.Cancel == nil || r.Cancel.Reason != "wrong collection" || r.Cancel.By != "localhost" {
		t.Errorf("got cancel request %+v, want the reason and the caller", r.Cancel)
	}
	if r := stage.Run(t, failed); r.Cancel != nil || r.State != run.Failed {
		t.Errorf("got %s with %+v, want the failed run unchanged", r.State, r.Cancel)
	}
	again := post[contract.BulkAnswer](t, stage, cancelRuns, fmt.Sprintf(body, ""), 200)
	if want := running + " requested"; results(again) != want {
		t.Errorf("got %s for a repeated request, want %s", results(again), want)
	}
}

func TestBulkFiltersRuns(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	old := stage.Failure(t, "no manifest")
	stage.Clock.Advance(time.Hour)
	middle := stage.Clock.Now().Format(time.RFC3339)
	stage.Clock.Advance(time.Hour)
	lost := stage.Accept(t)
	stage.Start(t, lost)
	if got := post[contract.CancelAnswer](t, stage, "/v1/tasks/"+lost+"/cancel", "", 202); got.Result != "requested" {
		t.Fatalf("got %+v", got)
	}
	stage.LoseMachine(t, lost)
	if r := stage.Run(t, lost); r.State != run.Cancelled {
		t.Fatalf("got state %s, want %s", r.State, run.Cancelled)
	}
	for filter, want := range map[string]string{
		`"faultCode":"WORKER_ERROR"`:                             old,
		`"faultCode":"QUEUE_TIMEOUT"`:                            "",
		`"createdBefore":"` + middle + `"`:                       old,
		`"createdAfter":"` + middle + `"`:                        "",
		`"createdAfter":"` + middle + `","states":["Cancelled"]`: lost,
		`"states":["Failed","Cancelled"]`:                        lost + " " + old,
		`"jobId":"nightly"`:                                      "",
		`"kind":"job"`:                                           "",
		`"kind":"export","states":["Failed"]`:                    old,
		`"kind":"program"`:                                       "",
		`"trigger":"schedule"`:                                   "",
		`"error":"NO manif"`:                                     old,
		`"error":"absent"`:                                       "",
		`"runIds":["` + old + `","none"]`:                        old,
		`"runIds":["` + old + `"],"error":"absent"`:              "",
	} {
		answer := post[contract.BulkAnswer](t, stage, retryRuns, `{"dryRun":true,"filter":{`+filter+`}}`, 200)
		if got := strings.ReplaceAll(strings.ReplaceAll(results(answer), " selected", ""), ",", ""); got != want {
			t.Errorf("%s: got %q, want %q", filter, got, want)
		}
	}
	listed := get[contract.TaskList](t, stage, "/v1/runs?faultCode=WORKER_ERROR&createdBefore="+middle)
	if len(listed.Tasks) != 1 || listed.Tasks[0].TaskID != old {
		t.Errorf("got list %+v, want %s", listed, old)
	}
}

// TestBulkOfRunsHasAResultForEach names runs by their ids, in a state that the request fits and in
// one that it does not fit.
func TestBulkOfRunsHasAResultForEach(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	failed, pending := stage.Failure(t, "no"), stage.Accept(t)
	other := stage.Accept(t)
	body := fmt.Sprintf(`{"filter":{"runIds":[%q,"none",%q]}}`, failed, pending)
	retried := post[contract.BulkAnswer](t, stage, retryRuns, body, 200)
	if want := failed + " created, " + pending + " refused"; results(retried) != want || retried.Runs[1].Code != "NOT_ENDED" || retried.NextCursor != "" {
		t.Errorf("got %+v, want %s", retried, want)
	}
	cancelled := post[contract.BulkAnswer](t, stage, cancelRuns, body, 200)
	if want := failed + " too_late, " + pending + " cancelled"; results(cancelled) != want {
		t.Errorf("got %s, want %s", results(cancelled), want)
	}
	if state := stage.Run(t, other).State; state != run.Pending {
		t.Errorf("got another run in %s, want it unchanged", state)
	}
}

// TestSearchIsBounded searches for a run behind many that do not match.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	old := stage.Failure(t, "no manifest")
	at := stage.Run(t, old).CreatedAt
	for range 30 {
		stage.Clock.Advance(time.Second)
		stage.Accept(t)
	}
	first := get[contract.TaskList](t, stage, "/v1/runs?error=manifest&limit=1")
	if len(first.Tasks) != 0 || first.NextCursor == "" || !first.SearchedUntil.After(at) || !first.SearchedUntil.Before(stage.Clock.Now()) {
		t.Errorf("got %+v, want the time until which was searched", first)
	}
	next := get[contract.TaskList](t, stage, "/v1/runs?error=manifest&limit=1&cursor="+first.NextCursor)
	if len(next.Tasks) != 1 || next.Tasks[0].TaskID != old || !next.SearchedUntil.IsZero() {
		t.Errorf("got %+v, want the failed run on the last page", next)
	}
	before := get[contract.TaskList](t, stage, "/v1/runs?limit=1&createdBefore="+at.Add(time.Second).Format(time.RFC3339Nano))
	if len(before.Tasks) != 1 || before.Tasks[0].TaskID != old {
		t.Errorf("got %+v, want a list that starts before the time", before)
	}
}

// TestSkippedRunsAreSelected lists and retries the runs that were skipped.
func TestSkippedRunsAreSelected(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	stage.Failure(t, "no manifest")
	task := stage.Success(t, "a.xml", "application/xml", "<a/>")
	d := run.NewSkipped(run.Run{
		Tenant: apitest.Tenant, Workspace: "main", ID: "nightly:20270101T000000Z", TaskID: "job_skipped", CorrelationID: "c", Trigger: run.TriggerSchedule,
		JobID: "nightly", JobVersion: 1, Policy: stage.Run(t, task).Policy, Missed: &run.Missed{Reason: run.SkipNoPool, Count: 1, Until: stage.Clock.Now()},
		Work: spec.Work{Kind: spec.KindJob, Image: "a", Program: &spec.Program{Completion: spec.CompletionExit}}, Priority: spec.PriorityNormal,
	}, stage.Clock.Now())
	if _, err := stage.Store.Create(t.Context(), port.WriteOf(d), nil); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{"skipped=true": 1, "skipped=false": 2, "skipped=false&state=Completed": 1, "skipped=true&state=Failed": 0} {
		for _, path := range []string{"/v1/runs?", "/v1/tasks?"} {
			listed := get[contract.TaskList](t, stage, path+query).Tasks
			if len(listed) != want {
				t.Errorf("%s%s: got %d runs, want %d", path, query, len(listed), want)
			}
			for _, one := range listed {
				if one.Skipped != strings.HasPrefix(query, "skipped=true") {
					t.Errorf("%s%s: got %s with skipped %t", path, query, one.TaskID, one.Skipped)
				}
			}
		}
	}
	answer := post[contract.BulkAnswer](t, stage, retryRuns, `{"dryRun":true,"filter":{"skipped":true}}`, 200)
	if got := results(answer); got != "job_skipped selected" {
		t.Errorf("got %q for the retry of skipped runs, want the one", got)
	}
}

// TestBulkRetryCreatesEachRunOnce repeats requests with and without a key. The new runs
// fail too: a request with the same key does not retry them.
func TestBulkRetryCreatesEachRunOnce(t *testing.T) {
	t.Parallel()
	const body = `{"filter":{"states":["Failed"]}}`
	stage := setup(t)
	old := stage.Failure(t, "no manifest")
	retried := func(want string, headers ...string) []string {
		t.Helper()
		answer := post[contract.BulkAnswer](t, stage, retryRuns, body, 200, headers...)
		var made, got []string
		for _, r := range answer.Runs {
			made, got = append(made, r.Retry.TaskID), append(got, r.Result)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %v for %v, want %s", got, headers, want)
		}
		return made
	}
	fail := func(task string) {
		t.Helper()
		stage.Clock.Advance(time.Second)
		stage.Start(t, task)
		stage.Report(t, task, contract.Callback{Status: "error", Error: "again"})
		stage.Settle(t, task)
	}
	first := retried("created", "Idempotency-Key", "k")[0]
	if r := stage.Run(t, first); r.RetryOf != old {
		t.Errorf("got a retry of %q, want %s", r.RetryOf, old)
	}
	fail(first)
	if same := retried("existing", "Idempotency-Key", "k"); same[0] != first {
		t.Errorf("got %v for the same key, want %s", same, first)
	}
	without := retried("created created")
	if again := retried("existing existing"); again[0] != without[0] || again[1] != without[1] {
		t.Errorf("got %v for a repeated request without a key, want %v", again, without)
	}
	if other := retried("created created", "Idempotency-Key", "l"); other[0] == without[0] || other[1] == first {
		t.Errorf("got %v for another key, want new runs", other)
	}
}

// TestBulkPagesCoverAllRuns cancels pages until there is no cursor.
func TestBulkPagesCoverAllRuns(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const all = 53
	for range all {
		stage.Clock.Advance(time.Second)
		stage.Accept(t)
	}
	seen, pages, cursor := map[string]bool{}, 0, ""
	for {
		answer := post[contract.BulkAnswer](t, stage, cancelRuns, fmt.Sprintf(`{"filter":{"states":["Pending"]},"limit":25,"cursor":%q}`, cursor), 200)
		pages++
		if len(answer.Runs) > 25 {
			t.Fatalf("got %d runs on a page, want at most 25", len(answer.Runs))
		}
		for _, r := range answer.Runs {
			seen[r.TaskID] = r.Result == contract.CancelDone
		}
		if cursor = answer.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != all || pages < 3 {
		t.Errorf("got %d runs in %d pages, want %d in at least 3", len(seen), pages, all)
	}
	for task, cancelled := range seen {
		if !cancelled {
			t.Errorf("%s: got another result, want cancelled", task)
		}
	}
}

// TestBulkRetryReportsRefusals checks that a retry that a full queue refuses does not end the
// request.
func TestBulkRetryReportsRefusals(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, routes(parts.Signer), func(s *apitest.Settings) { s.Service.QueueLimit = 2 })
	for range 2 {
		stage.Failure(t, "no")
	}
	for range 3 {
		stage.Call(t, http.MethodPost, "/v1/runs:retry", `{"filter":{"states":["Failed"]}}`, "Idempotency-Key", fmt.Sprint(time.Now().UnixNano()))
	}
	answer := post[contract.BulkAnswer](t, stage, retryRuns, `{"filter":{"states":["Failed"]}}`, 200, "Idempotency-Key", "last")
	if len(answer.Runs) != 2 || answer.Runs[0].Result != contract.BulkRefused || answer.Runs[0].Code != "ADMISSION_REJECT" || answer.Runs[0].Message == "" {
		t.Errorf("got %+v, want two runs that the queue refuses", answer.Runs)
	}
}

func TestRejectedBulkRequests(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	stage.Failure(t, "no")
	for _, row := range []struct{ path, body, field string }{
		{cancelRuns, `{}`, "filter"},
		{cancelRuns, `{"filter":{}}`, "filter"},
		{cancelRuns, `{"filter":{"states":[]}}`, "filter"},
		{cancelRuns, `{"filter":{"skipped":true}}`, "filter.skipped"},
		{retryRuns, `{"filter":{"skipped":"yes"}}`, "filter.skipped"},
		{cancelRuns, `{"filter":{"states":["running"]}}`, "filter.states.0"},
		{cancelRuns, `{"filter":{"states":["Running","Failed"]}}`, "filter.states.1"},
		{retryRuns, `{"filter":{"states":["Running"]}}`, "filter.states.0"},
		{retryRuns, `{"filter":{"jobId":"A"}}`, "filter.jobId"},
		{retryRuns, `{"filter":{"pool":"a/b"}}`, "filter.pool"},
		{retryRuns, `{"filter":{"kind":"inferences"}}`, "filter.kind"},
		{retryRuns, `{"filter":{"faultCode":"BAD"}}`, "filter.faultCode"},
		{retryRuns, `{"filter":{"trigger":"me"}}`, "filter.trigger"},
		{retryRuns, `{"filter":{"error":"` + strings.Repeat("ä", 201) + `"}}`, "filter.error"},
		{retryRuns, `{"filter":{"runIds":[]}}`, "filter"},
		{retryRuns, `{"filter":{"runIds":["a"` + strings.Repeat(`,"a"`, 100) + `]}}`, "filter.runIds"},
		{retryRuns, `{"filter":{"runIds":["a"]},"cursor":"abc"}`, "cursor"},
		{retryRuns, `{"filter":{"createdAfter":"yesterday"}}`, "filter.createdAfter"},
		{retryRuns, `{"filter":{"createdAfter":"2027-01-02T00:00:00Z","createdBefore":"2027-01-01T00:00:00Z"}}`, "filter.createdBefore"},
		{retryRuns, `{"filter":{"job":"a"}}`, "filter.job"},
		{retryRuns, `{"filter":{"kind":"job"},"reason":"x"}`, "reason"},
		{retryRuns, `{"filter":{"kind":"job"},"limit":101}`, "limit"},
		{retryRuns, `{"filter":{"kind":"job"},"limit":0}`, "limit"},
		{retryRuns, `{"filter":{"kind":"job"},"cursor":"abc"}`, "cursor"},
	} {
		if p := post[contract.Problem](t, stage, row.path, row.body, 400); p.Field != row.field {
			t.Errorf("%s %s: got field %q, want %s", row.path, row.body, p.Field, row.field)
		}
	}
	for query, field := range map[string]string{
		"jobId=A": "jobId", "pool=": "pool", "createdAfter=1": "createdAfter", "faultCode=BAD": "faultCode", "kind=x": "kind", "skipped=1": "skipped", "trigger=x": "trigger", "error=": "error",
	} {
		answer := stage.Call(t, http.MethodGet, "/v1/runs?"+query, "")
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want 400 for %s", query, answer.Status, answer.Body, field)
		}
	}
}
