package callback_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// wrongValues are the JSON values that no optional field of these kinds can have. Each
// counts as absent.
var wrongValues = map[string][]string{
	"time": {
		`""`, `"yesterday"`, `"2026-01-02T03:04:05.123456"`, `"2026-01-02t03:04:05z"`, `"2026-12-31T23:59:60Z"`, `"2026-01-02"`,
		`"2026-01-02 03:04:05Z"`, `"2026-13-02T03:04:05Z"`, `1767323045`, `1767323045.5`, `true`, `{}`, `[]`,
	},
	"number": {`"45"`, `""`, `"45%"`, `true`, `{}`, `[1]`, `1e400`, `-1e400`, `1e30`, `99999999999999999999`},
	"text":   {`5`, `4.5`, `false`, `{"a":1}`, `["a"]`},
	"switch": {`"true"`, `1`, `{}`, `[]`, `""`},
	"object": {`5`, `"x"`, `true`, `[1]`, `""`, `[{}]`},
}

// optionalFields lists the optional fields of each call, with %s for the value, by the
// kind of their value.
var optionalFields = map[string]map[string][]string{
	"started": {
		"time":   {`,"startedAt":%s`},
		"switch": {`,"handlesSigterm":%s`},
	},
	"heartbeat": {
		"time":   {`,"heartbeatAt":%s`},
		"number": {`,"progressPct":%s`},
		"text":   {`,"message":%s`},
	},
	"completed": {
		"time":   {succeeds + `,"completedAt":%s`},
		"number": {succeeds + `,"output":{"rowCount":%s}`, succeeds + `,"output":{"outputPath":"exports/TASK/x","byteSize":%s}`},
		"text": {
			succeeds + `,"output":{"materializationId":%s}`, succeeds + `,"output":{"outputPath":"exports/TASK/x","fileName":%s}`,
			succeeds + `,"cancelledDuringPhase":%s`, succeeds + `,"error":{"category":%s}`, succeeds + `,"error":{"message":%s}`,
			`,"outcome":"FAILED","error":{"category":"USER_CODE","message":%s}`,
			`,"outcome":"FAILED","error":{"category":"USER_CODE","message":"m","stackTrace":%s}`,
		},
		"switch": {`,"outcome":"FAILED","error":{"category":"USER_CODE","message":"m","retryable":%s}`},
		"object": {succeeds + `,"output":%s`, succeeds + `,"error":%s`, succeeds + `,"metrics":%s`},
	},
	"callback": {
		"number": {`{"status":"success","output_r2_key":"exports/TASK/x","output_file_size":%s}`},
		"text": {
			`{"status":"success","output_r2_key":"exports/TASK/x","output_file_name":%s}`, `{"status":"error","error":%s}`,
			`{"status":"success","error":%s}`, `{"status":"success","batch_id":%s}`,
		},
		"object": {`{"status":"success","metrics":%s}`},
	},
}

// TestOptionalFieldsCostNoResult sends every value that an optional field cannot have.
func TestOptionalFieldsCostNoResult(t *testing.T) {
	t.Parallel()
	for name, kinds := range optionalFields {
		for kind, templates := range kinds {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				for _, template := range templates {
					for _, value := range wrongValues[kind] {
						acceptsIgnored(t, name, fmt.Sprintf(template, value))
					}
				}
			})
		}
	}
}

func acceptsIgnored(t *testing.T, name, body string) {
	t.Helper()
	h := startTask(t)
	body = strings.ReplaceAll(body, "TASK", h.task)
	var answer apitest.Answer
	if route := workerRoutes()[name]; name == "callback" {
		route.body = body
		answer = route.call(t, h.stage, h.task, newForger(t, h.stage, h.task, route.audience).signed(t, nil, nil))
	} else {
		answer = h.call(t, name, h.body(1, body))
	}
	if answer.Status != http.StatusOK {
		t.Errorf("%s: got %d %s, want 200", body, answer.Status, answer.Body)
	}
	const logged = "unusable optional fields of a worker's call are ignored"
	if logs := h.stage.Logs(); !strings.Contains(logs, logged) || !strings.Contains(logs, `"attempt":1`) {
		t.Errorf("%s: got logs %s, want the ignored field", body, logs)
	}
}

// TestFractionsAreRounded reads the numbers of workers that compute in floating point.
func TestFractionsAreRounded(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	for given, want := range map[string]int{"45.5": 46, "45.4": 45, "45.0": 45, "4.5e1": 45, "-0.4": 0, "100.6": 100} {
		wantOK(t, h.call(t, "heartbeat", h.body(1, `,"progressPct":`+given)), heartbeatAck)
		item, err := h.stage.Store.LastHeartbeat(t.Context(), h.stage.Run(t, h.task).Ref())
		if err != nil || *item.Progress != want {
			t.Errorf("%s: got %d (%v), want %d", given, *item.Progress, err, want)
		}
	}
	const metrics = `{"cpuTimeMs":4.5}`
	wantOK(t, h.call(t, "completed", h.body(1, succeeds+`,"output":{"rowCount":9.0},"metrics":`+metrics)), `{"acknowledged":true,"finalState":"SUCCEEDED"}`)
	if report := h.stage.Run(t, h.task).Attempt.Report; string(report.Output) != `{"rowCount":9}` || string(report.Metrics) != metrics {
		t.Errorf("got output %s and metrics %s, want 9 rows and unchanged metrics", report.Output, report.Metrics)
	}
}

// TestOutputWithoutDetailsIsAccepted reports outputs whose size or name is missing or unusable.
// Both are read from the object.
func TestOutputWithoutDetailsIsAccepted(t *testing.T) {
	t.Parallel()
	for name, details := range map[string]string{
		"none": ``, "a negative size": `,"byteSize":-1`, "a size in words": `,"byteSize":"5"`, "a fraction": `,"byteSize":5.0`,
		"a file name with a slash": `,"byteSize":5,"fileName":"../a.xml"`, "a long file name": `,"fileName":"` + strings.Repeat("n", 256) + `"`,
		"a file name with a newline": `,"fileName":"a\nb"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startTask(t)
			key := "exports/" + h.task + "/x.xml"
			h.stage.Objects.Store(port.Uploads, key, "application/xml", "<a/>\n")
			wantOK(t, h.call(t, "completed", h.body(1, fmt.Sprintf(`%s,"output":{"outputPath":%q%s}`, succeeds, key, details))),
				`{"acknowledged":true,"finalState":"SUCCEEDED"}`)
			h.stage.Settle(t, h.task)
			if r := h.stage.Run(t, h.task); r.State != run.Completed || r.Output == nil || r.Output.Size != 5 || r.Output.FileName != "x.xml" {
				t.Errorf("got state %s with output %+v, want %s with 5 bytes as x.xml", r.State, r.Output, run.Completed)
			}
		})
	}
}

// TestRefusedHeartbeatIsASignOfLife sends heartbeats with a refused body.
func TestRefusedHeartbeatIsASignOfLife(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"not JSON":         {`attempt=1`, nil, http.StatusBadRequest},
		"no body":          {``, nil, http.StatusBadRequest},
		"no attempt":       {`{"workerId":"w1"}`, nil, http.StatusBadRequest},
		"attempt in words": {`{"attempt":"one","workerId":"w1"}`, nil, http.StatusBadRequest},
		"no worker":        {`{"attempt":1}`, nil, http.StatusBadRequest},
		"another attempt":  {`{"attempt":2,"workerId":"w1"}`, nil, http.StatusConflict},
		"a form":           {`attempt=1`, []string{"Content-Type", "application/x-www-form-urlencoded"}, http.StatusUnsupportedMediaType},
		"too large":        {`{"message":"` + strings.Repeat("x", 4<<20) + `"}`, nil, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startTask(t)
			last := func() time.Time {
				item, err := h.stage.Store.LastHeartbeat(t.Context(), h.stage.Run(t, h.task).Ref())
				if err != nil {
					t.Fatal(err)
				}
				return item.At
			}
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
			h.stage.Clock.Advance(80 * time.Second)
			path := "/v1/tasks/" + h.task + "/heartbeat"
			answer := h.stage.Call(t, http.MethodPost, path, row.body, append([]string{"Authorization", "Bearer " + h.token}, row.headers...)...)
			if answer.Status != row.status {
				t.Errorf("got %d %s, want %d", answer.Status, answer.Body, row.status)
			}
			if at := last(); !at.Equal(h.stage.Clock.Now()) {
				t.Errorf("got the last contact at %s, want %s", at, h.stage.Clock.Now())
			}
			before := last()
			h.stage.Clock.Advance(time.Second)
			clone := h.stage.Call(t, http.MethodPost, path, `{"attempt":1,"workerId":"other"}`, "Authorization", "Bearer "+h.token)
			forged := h.stage.Call(t, http.MethodPost, path, row.body, "Authorization", "Bearer "+h.token+"x")
			if at := last(); !at.Equal(before) || clone.Status != http.StatusGone || forged.Status != http.StatusUnauthorized {
				t.Errorf("got %d and %d and contact at %s, want 410 and 401 and no contact after %s", clone.Status, forged.Status, at, before)
			}
		})
	}
}
