package orchestrator

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// FuzzCompletion holds whatever a worker says of its end to the limits of a
// record: it is refused by the name of a field, or bounded, and what was taken
// once is taken again as the same.
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
	r := run.Run{TaskID: "t"}
	f.Fuzz(func(t *testing.T, text []byte) {
		var body contract.TaskCompleted
		if json.Unmarshal(text, &body) != nil {
			return
		}
		report, err := completionOf(r, body)
		if err != nil {
			if named := fault.Of(err); named.Code != fault.InvalidRequest || named.Field == "" {
				t.Fatalf("%s is refused with %v", text, err)
			}
			return
		}
		again, err := completionOf(r, body)
		if err != nil || again.Digest != report.Digest {
			t.Fatalf("%s is %s and then %s (%v)", text, report.Digest, again.Digest, err)
		}
		holdReport(t, text, report)
		if report.Success != (report.Outcome == run.OutcomeSucceeded) {
			t.Fatalf("%s is a success: %v", text, report.Success)
		}
	})
}

// FuzzCallback is FuzzCompletion for the export contract's older words.
func FuzzCallback(f *testing.F) {
	for _, seed := range []string{
		`{"status":"success"}`, `{"task_id":"t","status":"success","output_r2_key":"exports/t/x.xml","output_file_name":"x.xml","output_file_size":4}`,
		`{"status":"success","output_r2_key":"exports/t/../u/x","output_file_name":"../x","output_file_size":-1}`,
		`{"status":"success","output_r2_key":"exports/t/x","output_file_name":"a\u0000b"}`,
		`{"status":"error","error":"Failed to fetch manifest","metrics":{"a":[1,null]}}`, `{"status":"error"}`, `{"status":"done"}`, `{"task_id":"u"}`,
	} {
		f.Add([]byte(seed))
	}
	r := run.Run{TaskID: "t"}
	f.Fuzz(func(t *testing.T, text []byte) {
		var body contract.Callback
		if json.Unmarshal(text, &body) != nil {
			return
		}
		report, err := reportOf(r, body)
		if err != nil {
			if named := fault.Of(err); named.Code != fault.InvalidRequest || named.Field == "" {
				t.Fatalf("%s is refused with %v", text, err)
			}
			return
		}
		if again, err := reportOf(r, body); err != nil || again.Digest != report.Digest {
			t.Fatalf("%s is %s and then %s (%v)", text, report.Digest, again.Digest, err)
		}
		holdReport(t, text, report)
		if report.Success == (report.Error != "") {
			t.Fatalf("%s is a success: %v, with the error %q", text, report.Success, report.Error)
		}
	})
}

// holdReport holds what is kept of a worker's last word to its limits.
func holdReport(t *testing.T, text []byte, report run.Report) {
	t.Helper()
	for what, limit := range map[string]int{report.Error: messageLimit, report.StackTrace: stackTraceLimit, report.Phase: phaseLimit} {
		if len(what) > limit || !utf8.ValidString(what) {
			t.Fatalf("%d bytes are kept of %s", len(what), text)
		}
	}
	for _, own := range []json.RawMessage{report.Metrics, report.Output, report.Partial} {
		if len(own) > ownObjectLimit || own != nil && !json.Valid(own) {
			t.Fatalf("kept of %s is %s", text, own)
		}
	}
	if u := report.Upload; u != nil && (!strings.HasPrefix(u.Key, OutputPrefix("t")) || strings.Contains(u.Key, "/../") || strings.ContainsAny(u.FileName, "/\\")) {
		t.Fatalf("%s may upload to %+v", text, u)
	}
}

// FuzzPolicy holds whatever a request asks for to what a run can be held to.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"timeLimitSeconds":3}`, `{"timeLimitSeconds":1209600,"heartbeatTimeoutSeconds":1209599}`,
		`{"heartbeatIntervalSeconds":1,"heartbeatTimeoutSeconds":2}`, `{"heartbeatIntervalSeconds":5}`,
		`{"retry":{"maxAttempts":1,"initialDelaySeconds":90,"multiplier":1.5,"jitter":1,"categories":["TIMEOUT"]}}`,
		`{"retry":{"maxDelaySeconds":1}}`, `{"cancelGraceSeconds":-1}`, `{"startTimeoutSeconds":9223372036854775807}`,
	} {
		f.Add([]byte(seed))
	}
	config, err := ConfigFrom(func(string) (string, bool) { return "", false })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var asked contract.Policy
		if json.Unmarshal(text, &asked) != nil {
			return
		}
		p, err := policyOf(config.Policy, &asked)
		if err != nil {
			if named := fault.Of(err); named.Code != fault.InvalidRequest || !strings.HasPrefix(named.Field, "policy.") {
				t.Fatalf("%s is refused with %v", text, err)
			}
			return
		}
		config := config
		config.Policy = p
		if found := config.contradictions(); len(found) > 0 {
			t.Fatalf("%s is taken and contradicts itself: %v", text, found)
		}
		if p.TimeLimit > timeLimitMost || p.CancelGrace < 1 || p.Retry.Multiplier < 1 || p.Retry.Jitter < 0 || p.Retry.Jitter > 1 || p.Retry.MaxAttempts < 1 {
			t.Fatalf("%s is taken as %+v", text, p)
		}
	})
}
