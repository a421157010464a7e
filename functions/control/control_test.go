package control_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func setup(t *testing.T) *apitest.Stage {
	t.Helper()
	return apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
		return append(append(control.Routes(s.Pools), runs.Routes(s.Definitions, s.Explanations)...), jobs.Routes(s.Jobs, s.Queries, s.Explanations)...)
	})
}

const path = "/v1/pools/reports"

func TestPoolIsCreatedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[contract.Problem](t, stage, "GET", path, "", 404)
	p, header := apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 4, "queueLimit": 9}`, 201)
	if p.ID != "reports" || p.Limit != 4 || p.QueueLimit != 9 || p.Version != 1 || header.Get("Location") != path {
		t.Errorf("got %+v with headers %v, want the pool and its path", p, header)
	}
	tag := header.Get("ETag")
	if _, again := apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 4, "queueLimit": 9}`, 200); again.Get("ETag") != tag {
		t.Errorf("the same limits: got tag %s, want %s", again.Get("ETag"), tag)
	}
	if p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 0}`, 200, "If-Match", tag); p.Limit != 0 || p.QueueLimit != 0 || p.Version != 2 {
		t.Errorf("got %+v, want no limit and the queue limit of the deployment", p)
	}
	for _, change := range [][2]string{{"PUT", path}, {"DELETE", path}, {"POST", path + "/drain"}, {"POST", path + "/resume"}} {
		body := map[string]string{"PUT": `{"limit": 5}`}[change[0]]
		if f, _ := apitest.Decoded[contract.Problem](t, stage, change[0], change[1], body, 412, "If-Match", tag); f.Code != "PRECONDITION_FAILED" {
			t.Errorf("%v with an old tag: got %+v", change, f)
		}
	}
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"limit": 5}`, 412, "If-None-Match", "*")
	apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/pools/other", `{"limit": 5}`, 412, "If-Match", "*")
	apitest.Decoded[any](t, stage, "DELETE", path, "", 204)
	apitest.Decoded[contract.Problem](t, stage, "GET", path, "", 404)
	apitest.Decoded[contract.Problem](t, stage, "DELETE", path, "", 404)
}

func TestDefaultPoolAlwaysExists(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	p, header := apitest.Decoded[contract.Pool](t, stage, "GET", "/v1/pools/default", "", 200)
	if p.Limit != 2 || p.Version != 0 {
		t.Errorf("got %+v, want the limits of the deployment", p)
	}
	if list, _ := apitest.Decoded[contract.PoolList](t, stage, "GET", "/v1/pools", "", 200); len(list.Pools) != 1 || !reflect.DeepEqual(list.Pools[0], p) {
		t.Errorf("got %+v, want the default pool", list)
	}
	apitest.Decoded[contract.Pool](t, stage, "PUT", "/v1/pools/default", `{"limit": 7}`, 200, "If-Match", header.Get("ETag"))
	if f, _ := apitest.Decoded[contract.Problem](t, stage, "DELETE", "/v1/pools/default", "", 409); f.Code != "POOL_IN_USE" {
		t.Errorf("got %+v, want POOL_IN_USE", f)
	}
}

func TestHugeLimitIsRefusedWithTheRange(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for _, value := range []string{"100001", "1e30", "-1e400", strings.Repeat("9", 1000)} {
		p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"limit": `+value+`}`, 400)
		if p.Field != "limit" || !strings.Contains(p.Detail, "out of range, want 0 (no limit) to 100000") || len(p.Detail) > 100 {
			t.Errorf("%.20s: got %q of field %q, want the range of limit", value, p.Detail, p.Field)
		}
	}
}

func TestDayOfGuestsIsChecked(t *testing.T) {
	t.Parallel()
	a := setup(t)
	for query, want := range map[string]int{"": 200, "?day=2026-11-29": 200, "?day=": 400, "?day=2026-11-31": 400, "?day=today": 400} {
		got := a.Call(t, "GET", "/v1/pools/default/guests"+query, "")
		if got.Status != want || want != 200 && !strings.Contains(got.Body, `"field":"day"`) {
			t.Errorf("%s: got %d %s, want %d and the field day", query, got.Status, got.Body, want)
		}
	}
}

func TestInvalidPoolsAreRefused(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 1}`, 201)
	for _, row := range []struct{ method, path, body, field string }{
		{"PUT", path, `{}`, "limit"},
		{"PUT", path, `{"limit": -1}`, "limit"},
		{"PUT", path, `{"limit": 100001}`, "limit"},
		{"PUT", path, `{"limit": 1.5}`, "limit"},
		{"PUT", path, `{"limit": "4"}`, "limit"},
		{"PUT", path, `{"limit": 1, "queueLimit": -1}`, "queueLimit"},
		{"PUT", path, `{"limit": 1, "queueLimit": 10000001}`, "queueLimit"},
		{"PUT", path, `{"limit": 1, "runner": "moon"}`, "runner"},
		{"PUT", path, `{"limit": 1, "settings": {}}`, "settings"},
		{"PUT", path, `{"limit": 1, "fallback": [{"pool": "default"}]}`, "fallback.0.on"},
		{"PUT", path, `{"limit": 1, "fallback": [{"pool": "default", "on": ["throttled"], "throttledSeconds": 0}]}`, "fallback.0.throttledSeconds"},
		{"PUT", path, `{"limit": 1, "runner": "fly", "settings": {"zones": ["a"]}}`, "settings.zones"},
		{"PUT", path, `{"limit": 1, "runner": "fly", "settings": {"namespace": "a"}}`, "settings.namespace"},
		{"PUT", path, `{"limit": 1, "runner": "fly", "settings": {"regions": ["ams", "Fra"]}}`, "settings.regions.1"},
		{"PUT", path, `{"limit": 1, "runner": "kubernetes", "settings": {"namespace": "A"}}`, "settings.namespace"},
		{"PUT", path, `{"limit": 1, "runner": "kubernetes", "settings": {"podDefaults": []}}`, "settings.podDefaults"},
		{"PUT", path, `{"limit": 1, "runner": "fly", "settings": {"labels": {"a.b/c": "d"}}}`, "settings.labels"},
		{"PUT", path, `{"limit": 1, "runner": "kubernetes", "settings": {"labels": {"c": "d"}}}`, "settings.labels.c"},
		{"PUT", "/v1/pools/Reports", `{"limit": 1}`, "pool_id"},
		{"PUT", "/v1/pools/-a", `{"limit": 1}`, "pool_id"},
		{"PUT", "/v1/pools/job%2Fnightly", `{"limit": 1}`, "pool_id"},
		{"POST", path + "/drain", `{"deadlineSeconds": -1}`, "deadlineSeconds"},
		{"POST", path + "/drain", `{"deadlineSeconds": 2592001}`, "deadlineSeconds"},
		{"POST", path + "/drain", `{"seconds": 1}`, "seconds"},
		{"POST", path + "/resume", `{"limit": 1}`, "limit"},
	} {
		if f, _ := apitest.Decoded[contract.Problem](t, stage, row.method, row.path, row.body, 400); f.Field != row.field {
			t.Errorf("%s %s %s: got field %q (%s), want %s", row.method, row.path, row.body, f.Field, f.Detail, row.field)
		}
	}
	if p, _ := apitest.Decoded[contract.Pool](t, stage, "GET", path, "", 200); p.Version != 1 || p.Draining {
		t.Errorf("got %+v, want it unchanged", p)
	}
}

func TestRunnerOfAPoolIsOneOfTheDeployment(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const body = `{"limit": 1, "runner": "fly", "settings": {"apps": ["app-b"], "regions": ["fra", "ams"]}}`
	for _, status := range []int{201, 200} {
		p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", path, body, status)
		if s := p.Settings; p.Version != 1 || p.Runner != "fly" || s == nil || !slices.Equal(s.Apps, []string{"app-b"}) || !slices.Equal(s.Regions, []string{"fra", "ams"}) {
			t.Fatalf("got %+v with settings %+v", p, s)
		}
	}
	for _, row := range []struct{ body, code, field string }{
		{`{"limit": 1, "runner": "process"}`, "RUNNER_NOT_ALLOWED", "runner"},
		{`{"limit": 1, "runner": "container"}`, "RUNNER_NOT_ALLOWED", "runner"},
		{`{"limit": 1, "runner": "fly", "settings": {"apps": ["other"]}}`, "UNPROCESSABLE", "settings.apps.0"},
	} {
		if f, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, row.body, 422); f.Code != row.code || f.Field != row.field {
			t.Errorf("%s: got %s of field %q (%s), want %s of %s", row.body, f.Code, f.Field, f.Detail, row.code, row.field)
		}
	}
	if p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 1}`, 200); p.Runner != "" || p.Settings != nil || p.Version != 2 {
		t.Errorf("got %+v, want the runner of the deployment", p)
	}
}

func TestAllProblemsOfAPoolAreReported(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	body := `{"queueLimit": -1, "runner": "fly", "settings": {"apps": ["x"], "regions": ["A"], "socket": "a"}, "fallback": [{"pool": "reports", "on": []}]}`
	p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, body, 400)
	var fields []string
	for _, each := range p.Problems {
		fields = append(fields, each.Field)
	}
	want := []string{"limit", "settings.socket", "queueLimit", "settings.apps.0", "settings.regions.0", "fallback.0.pool", "fallback.0.on"}
	if !slices.Equal(fields, want) || p.Field != "limit" || !strings.Contains(p.Detail, `settings.regions.0: malformed name "A"`) {
		t.Errorf("got %s of field %s with the problems of %v, want those of %v", p.Detail, p.Field, fields, want)
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"limit": 1, "runner": "process"}`, 422); p.Code != "RUNNER_NOT_ALLOWED" || len(p.Problems) != 1 {
		t.Errorf("got %+v, want the code of the only problem", p)
	}
}

func TestFallbacksOfAPoolAreStored(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const body = `{"limit": 1, "fallback": [{"pool": "default", "on": ["throttled", "image"], "throttledSeconds": 90}]}`
	for _, status := range []int{201, 200} {
		p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", path, body, status)
		if f := p.Fallback; p.Version != 1 || len(f) != 1 || f[0].Pool != "default" || !slices.Equal(f[0].On, []string{"throttled", "image"}) || *f[0].ThrottledSeconds != 90 {
			t.Fatalf("got %+v with fallbacks %+v", p, f)
		}
	}
	cycle := `{"limit": 2, "fallback": [{"pool": "reports", "on": ["capacity"]}]}`
	if f, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/pools/default", cycle, 422); f.Field != "fallback.0.pool" {
		t.Errorf("a cycle: got field %q (%s), want fallback.0.pool", f.Field, f.Detail)
	}
}

func TestDrainAndResumeAreInTheHealth(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 1}`, 201)
	var tasks []string
	for range 2 {
		accepted, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", "/v1/runs", `{"image": "app", "pool": "reports"}`, 202)
		tasks = append(tasks, accepted.TaskID)
		stage.Admit(t, accepted.TaskID)
	}
	stage.Clock.Advance(90 * time.Second)
	health, _ := apitest.Decoded[contract.PoolHealth](t, stage, "GET", path+"/health", "", 200)
	want := contract.PoolHealth{Live: true, Ready: true, Held: 1, Queued: 1, Metrics: contract.PoolMetrics{Limit: 1, LongestWaitSeconds: 90}, Errors: []contract.PoolErrorGroup{}}
	want.Remaining = []contract.Holder{{RunID: tasks[0], TaskID: tasks[0], State: "ContainerCreating", Since: stage.Clock.Now().Add(-90 * time.Second)}}
	if w := health.Metrics.ExpectedWait; w == nil || w.P90Seconds < w.P50Seconds {
		t.Errorf("got the expected wait %+v, want one", w)
	}
	if w := health.Waiting; len(w) != 1 || w[0].RunID != tasks[1] || w[0].QueuePosition == nil || *w[0].QueuePosition != 0 {
		t.Errorf("got the queue %+v, want the second run at its head", w)
	}
	health.Metrics.ExpectedWait, health.Waiting = nil, nil
	if !reflect.DeepEqual(health, want) {
		t.Errorf("got %+v, want %+v", health, want)
	}
	stage.Start(t, tasks[0])
	p, _ := apitest.Decoded[contract.Pool](t, stage, "POST", path+"/drain", `{"deadlineSeconds": 60}`, 202)
	if by := stage.Clock.Now().Add(time.Minute); !p.Draining || !p.DrainBy.Equal(by) {
		t.Errorf("got %+v, want it to drain by %s", p, by)
	}
	if health, _ = apitest.Decoded[contract.PoolHealth](t, stage, "GET", path+"/health", "", 200); health.Ready || !health.Draining || health.Machines != 1 || health.MachineStates.Running != 1 || health.Metrics.ExpectedWait != nil {
		t.Errorf("got %+v, want it not ready, with a machine", health)
	}
	if d := health.Drain; d == nil || d.Phase != "waiting" || !d.Deadline.Equal(p.DrainBy) || d.Runs != 1 {
		t.Errorf("got the drain %+v, want it to wait for one run", d)
	}
	if p, _ = apitest.Decoded[contract.Pool](t, stage, "POST", path+"/drain", "", 202); !p.DrainBy.IsZero() {
		t.Errorf("got %+v, want no deadline", p)
	}
	apitest.Decoded[contract.Problem](t, stage, "DELETE", path, "", 409)
	if p, _ = apitest.Decoded[contract.Pool](t, stage, "POST", path+"/resume", "", 200); p.Draining {
		t.Errorf("got %+v, want it to admit runs", p)
	}
	if f, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/reload", "", 409); f.Code != "NO_ENGINE" {
		t.Errorf("got %+v, want NO_ENGINE", f)
	}
	for _, unknown := range []string{"/drain", "/resume", "/reload"} {
		apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/pools/unknown"+unknown, "", 404)
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/pools/unknown/health", "", 404)
}

// TestErrorsOfThePlatformAreInTheHealth reads stored failures.
func TestErrorsOfThePlatformAreInTheHealth(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 1}`, 201)
	at := stage.Clock.Now().UTC().Truncate(time.Second)
	want := []contract.PoolErrorGroup{
		{Code: "CAPACITY", Message: "no room", Count: 12, FirstAt: at.Add(-time.Hour), LastAt: at},
		{Code: "IMAGE", Message: "unknown image", Count: 1, FirstAt: at.Add(-time.Hour), LastAt: at.Add(-time.Hour)},
	}
	document, err := json.Marshal(map[string]any{"groups": want})
	if err != nil {
		t.Fatal(err)
	}
	stored := port.Resource{ResourceRef: port.ResourceRef{Tenant: apitest.Tenant, Kind: "pool-errors", ID: "reports"}, CreatedAt: at, Document: document}
	if err := stage.Store.WriteResources(t.Context(), []port.Resource{stored}, nil); err != nil {
		t.Fatal(err)
	}
	health, _ := apitest.Decoded[contract.PoolHealth](t, stage, "GET", path+"/health", "", 200)
	if !reflect.DeepEqual(health.Errors, want) {
		t.Errorf("got %+v, want %+v", health.Errors, want)
	}
}

func TestFullQueueOfAPoolIsTooManyRequests(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 1, "queueLimit": 1}`, 201)
	apitest.Decoded[map[string]any](t, stage, "PUT", "/v1/jobs/nightly", `{"image": "app", "pool": "reports"}`, 201)
	for range 2 {
		apitest.Decoded[contract.RunAccepted](t, stage, "POST", "/v1/runs", `{"image": "app", "pool": "reports"}`, 202)
	}
	for _, path := range []string{"/v1/runs", "/v1/jobs/nightly/runs"} {
		body := map[string]string{"/v1/runs": `{"image": "app", "pool": "reports"}`}[path]
		f, header := apitest.Decoded[contract.Problem](t, stage, "POST", path, body, 429)
		if f.Code != "ADMISSION_REJECT" || header.Get("Retry-After") != "1" || header.Get("X-Backoff-Ms") != "1000" {
			t.Errorf("%s: got %+v with headers %v, want ADMISSION_REJECT, Retry-After 1 and X-Backoff-Ms 1000", path, f, header)
		}
	}
	apitest.Decoded[contract.RunAccepted](t, stage, "POST", "/v1/runs", `{"image": "app"}`, 202)
	for _, unknown := range [][2]string{{"PUT", "/v1/jobs/other"}, {"POST", "/v1/runs"}} {
		if f, _ := apitest.Decoded[contract.Problem](t, stage, unknown[0], unknown[1], `{"image": "app", "pool": "tiny"}`, 422); f.Field != "pool" {
			t.Errorf("%v: got %+v, want a fault of the field pool", unknown, f)
		}
	}
}
