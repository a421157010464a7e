package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// FuzzCompletion checks that every completion is either refused with a field, or becomes a
// report within the limits that is the same when repeated.
func FuzzCompletion(f *testing.F) {
	for _, seed := range []string{
		`{"outcome":"SUCCEEDED"}`, `{"outcome":"SUCCEEDED","output":{"outputPath":"exports/t/attempt-1/output","byteSize":4}}`,
		`{"outcome":"SUCCEEDED","output":{"outputPath":"exports/t/../x","byteSize":4,"fileName":"a/b"}}`,
		`{"outcome":"SUCCEEDED","output":{"outputPath":"gs://b/x"},"metrics":{"a":[1,null]}}`,
		`{"outcome":"FAILED","error":{"category":"USER_CODE","message":"m","stackTrace":"t","retryable":false}}`,
		`{"outcome":"FAILED","error":{"category":"MOOD","message":""}}`, `{"outcome":"FAILED"}`,
		`{"outcome":"CANCELLED","cancelledDuringPhase":"p","partialProgress":[1]}`, `{"outcome":"success"}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var body contract.TaskCompleted
		if json.Unmarshal(text, &body) != nil {
			return
		}
		report, err := Completion("t", body)
		if err != nil {
			if named := fault.Of(err); named.Code != fault.InvalidRequest || named.Field == "" {
				t.Fatalf("got error %v for %s, want an InvalidRequest that names a field", err, text)
			}
			return
		}
		again, err := Completion("t", body)
		if err != nil || again.Digest != report.Digest {
			t.Fatalf("got digest %s and then %s (%v) for %s, want one digest", report.Digest, again.Digest, err, text)
		}
		checkReport(t, text, report)
		if report.Success != (report.Outcome == run.OutcomeSucceeded) {
			t.Fatalf("got success %t for %s with outcome %s", report.Success, text, report.Outcome)
		}
	})
}

// FuzzCallback checks the same for the callback of the export contract.
func FuzzCallback(f *testing.F) {
	for _, seed := range []string{
		`{"status":"success"}`, `{"task_id":"t","status":"success","output_r2_key":"exports/t/x.xml","output_file_name":"x.xml","output_file_size":4}`,
		`{"status":"success","output_r2_key":"exports/t/../u/x","output_file_name":"../x","output_file_size":-1}`,
		`{"status":"success","output_r2_key":"exports/t/x","output_file_name":"a\u0000b"}`,
		`{"status":"error","error":"Failed to fetch manifest","metrics":{"a":[1,null]}}`, `{"status":"error"}`, `{"status":"done"}`, `{"task_id":"u"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var body contract.Callback
		if json.Unmarshal(text, &body) != nil {
			return
		}
		report, err := Callback(run.Run{TaskID: "t"}, body)
		if err != nil {
			named := fault.Of(err)
			if named.Code != fault.InvalidRequest && named.Code != fault.TaskMismatch || named.Field == "" {
				t.Fatalf("got error %v for %s, want an InvalidRequest or TaskMismatch that names a field", err, text)
			}
			return
		}
		if again, err := Callback(run.Run{TaskID: "t"}, body); err != nil || again.Digest != report.Digest {
			t.Fatalf("got digest %s and then %s (%v) for %s, want one digest", report.Digest, again.Digest, err, text)
		}
		checkReport(t, text, report)
		if report.Success == (report.Error != "") {
			t.Fatalf("got success %t with error %q for %s", report.Success, report.Error, text)
		}
	})
}

// checkReport checks that a report is within its limits.
func checkReport(t *testing.T, text []byte, report run.Report) {
	t.Helper()
	for what, most := range map[string]int{report.Error: limit.Message, report.StackTrace: limit.StackTrace, report.Phase: limit.Phase} {
		if len(what) > most || !utf8.ValidString(what) {
			t.Fatalf("got a text of %d bytes for %s, want at most %d of UTF-8", len(what), text, most)
		}
	}
	for _, own := range []json.RawMessage{report.Metrics, report.Output, report.Partial} {
		if len(own) > limit.Object || own != nil && !json.Valid(own) {
			t.Fatalf("got object %s for %s, want JSON within the limit", own, text)
		}
	}
	if u := report.Upload; u != nil && (!strings.HasPrefix(u.Key, limit.OutputPrefix("t")) || strings.Contains(u.Key, "/../") || strings.ContainsAny(u.FileName, "/\\")) {
		t.Fatalf("got upload %+v for %s, want one inside the task's prefix", u, text)
	}
}

// FuzzPolicy checks that every accepted policy is valid.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"timeLimitSeconds":3}`, `{"timeLimitSeconds":1209600,"heartbeatTimeoutSeconds":1209599}`,
		`{"heartbeatIntervalSeconds":1,"heartbeatTimeoutSeconds":2}`, `{"heartbeatIntervalSeconds":5}`,
		`{"retry":{"maxAttempts":1,"initialDelaySeconds":90,"multiplier":1.5,"jitter":1,"categories":["TIMEOUT"]}}`,
		`{"retry":{"maxDelaySeconds":1}}`, `{"cancelGraceSeconds":-1}`, `{"startTimeoutSeconds":9223372036854775807}`,
	} {
		f.Add([]byte(seed))
	}
	defaults := spec.Policy{
		StartTimeout: 10 * time.Minute, TimeLimit: time.Hour, HeartbeatInterval: 30 * time.Second, HeartbeatTimeout: 90 * time.Second,
		CancelGrace: 30 * time.Second, QueueTimeout: 24 * time.Hour, OutputRetention: 24 * time.Hour, RecordRetention: 168 * time.Hour,
		Retry: spec.Retry{
			MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute, Jitter: 0.5,
		},
	}
	if broken := defaults.Validate(); len(broken) > 0 {
		f.Fatalf("got defaults that break %v, want valid defaults", broken)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var asked contract.Policy
		if json.Unmarshal(text, &asked) != nil {
			return
		}
		p, err := policyFrom(defaults, &asked)
		if err != nil {
			if named := fault.Of(err); named.Code != fault.InvalidRequest || !strings.HasPrefix(named.Field, "policy.") {
				t.Fatalf("got error %v for %s, want an InvalidRequest that names a field", err, text)
			}
			return
		}
		if broken := p.Validate(); len(broken) > 0 {
			t.Fatalf("got policy %+v for %s, which breaks %v", p, text, broken)
		}
	})
}
