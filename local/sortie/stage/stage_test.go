package stage_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/stage"
)

func TestUnknownStageIsNotDeployed(t *testing.T) {
	t.Parallel()
	if _, err := (&account{stack: "{}"}).find(t, "test"); !errors.Is(err, stage.ErrNoStack) {
		t.Errorf("got %v, want ErrNoStack", err)
	}
}

func TestDrainClosesTheEntrance(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ template, opened string }{
		"no concurrency reserved": {`{}`, "DELETE sortie-prod-export/concurrency"},
		"some reserved": {
			`{"Resources":{"Export":{"Type":"AWS::Lambda::Function","Properties":{"FunctionName":"sortie-prod-export","ReservedConcurrentExecutions":50}}}}`,
			`PUT sortie-prod-export/concurrency {"ReservedConcurrentExecutions":50}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &account{stack: row.template}
			s := arrange(t, a)
			if err := errors.Join(s.Drain(t.Context()), s.Open(t.Context())); err != nil {
				t.Fatal(err)
			}
			want := []string{`PUT sortie-prod-export/concurrency {"ReservedConcurrentExecutions":0}`, row.opened}
			if !slices.Equal(a.calls, want) {
				t.Errorf("got %q, want %q", a.calls, want)
			}
		})
	}
}

func TestRedriveInvokesTheRelay(t *testing.T) {
	t.Parallel()
	a := &account{stack: "{}"}
	if done, err := arrange(t, a).Redrive(t.Context()); err != nil || done != (stage.Redriven{}) {
		t.Errorf("got %+v, %v, want nothing redriven", done, err)
	}
	if want := []string{`POST sortie-prod-relay/invocations {"redrive":true}`}; !slices.Equal(a.calls, want) {
		t.Errorf("got %q, want %q", a.calls, want)
	}
}

func TestAwaitIdleWaitsForTheLastRun(t *testing.T) {
	t.Parallel()
	s := arrange(t, &account{stack: "{}", outputs: map[string]string{"StateMachineArn": "arn"}, running: []int{3, 3, 1, 0}})
	var seen []int
	if err := s.AwaitIdle(t.Context(), func(running int) { seen = append(seen, running) }); err != nil || !slices.Equal(seen, []int{3, 1}) {
		t.Errorf("got %v, %v, want 3 and 1", seen, err)
	}
}

const twoBuckets = `{"Resources":{
	"Uploads":{"Type":"AWS::S3::Bucket","DeletionPolicy":"%[1]s"},"Accepted":{"Type":"AWS::S3::Bucket","DeletionPolicy":"%[1]s"}}}`

func TestEmptyDeletesEveryVersion(t *testing.T) {
	t.Parallel()
	a := &account{
		stack: fmt.Sprintf(twoBuckets, "Delete"), bucketOf: map[string]string{"Uploads": "up", "Accepted": "down"},
		objects: map[string][]string{"up": {"a@1", "a@2", "b@1", "c@null", "d@9"}, "down": {}, "other": {"x@1"}},
	}
	deleted, err := arrange(t, a).Empty(t.Context())
	if err != nil || deleted != 5 || len(a.objects["up"]) != 0 || len(a.objects["other"]) != 1 {
		t.Errorf("got %d deleted, %v, objects %v, want 5 and one object of another bucket", deleted, err, a.objects)
	}
	slices.Sort(a.calls)
	if want := []string{`PUT sortie-prod-export/concurrency {"ReservedConcurrentExecutions":0}`, "abort down u", "abort up u"}; !slices.Equal(a.calls, want) {
		t.Errorf("got %q, want %q", a.calls, want)
	}
}

func TestEmptyRefusesRetainedData(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{
		fmt.Sprintf(twoBuckets, "Retain"), fmt.Sprintf(twoBuckets, "RetainExceptOnCreate"), `{"Resources":{"Table":{"Type":"AWS::DynamoDB::Table","DeletionPolicy":"Retain"}}}`,
	} {
		a := &account{stack: stack, objects: map[string][]string{"up": {"a@1"}}}
		if _, err := arrange(t, a).Empty(t.Context()); !errors.Is(err, stage.ErrRetained) || len(a.objects["up"]) != 1 || len(a.calls) > 0 {
			t.Errorf("got %v, objects %v, calls %v, want ErrRetained and no call", err, a.objects, a.calls)
		}
	}
}

func TestRestoreCompletesTheTable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	a := &account{
		stack: "{}", outputs: map[string]string{"TableName": "now"}, polls: 2,
		tables: map[string]*table{"now": {protection: true, tags: map[string]string{"owner": "ops", "aws:cloudformation:stack-name": "sortie-prod"}}},
	}
	s := arrange(t, a)
	const want = "arn:aws:dynamodb:eu-west-1:111122223333:table/then/stream/2026-11-22T09:00:00.000"
	for _, restores := range []int{1, 1} { // the second call continues
		stream, err := s.Restore(t.Context(), stage.Restoration{Target: "then", At: at}, func(string) {})
		if err != nil || stream != want {
			t.Fatalf("got stream %q, %v, want %q", stream, err, want)
		}
		restored := slices.Index(a.calls, "RestoreTableToPointInTime now then 1795338000 false")
		if n := strings.Count(strings.Join(a.calls, "\n"), "RestoreTable"); restored != 0 || n != restores {
			t.Errorf("got calls %q, want one restoration first", a.calls)
		}
	}
	then := a.tables["then"]
	if then.ttl != "ENABLED expires_at" || !then.stream || !then.protection || !then.recovery {
		t.Errorf("got table %+v, want everything enabled", then)
	}
	if want := map[string]string{"project": "sortie", "stage": "prod", "owner": "ops"}; !maps.Equal(then.tags, want) {
		t.Errorf("got tags %v, want %v", then.tags, want)
	}
}

func TestRestoreTakesTheLatestMoment(t *testing.T) {
	t.Parallel()
	a := &account{stack: "{}", outputs: map[string]string{"TableName": "now"}, tables: map[string]*table{"now": {}}}
	s := arrange(t, a)
	if _, err := s.Restore(t.Context(), stage.Restoration{Target: "then"}, func(string) {}); err != nil || !strings.HasSuffix(a.calls[0], " now then 0 true") {
		t.Errorf("got calls %q, %v, want the latest moment", a.calls, err)
	}
	if a.tables["then"].protection {
		t.Error("got deletion protection, which the source does not have")
	}
	if _, err := s.Restore(t.Context(), stage.Restoration{Target: "now"}, func(string) {}); err == nil {
		t.Error("restoration to the present table: got no error")
	}
}

func TestSettingsAreWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cdk.json")
	if err := os.WriteFile(file, []byte(`{"app": "x", "context": {"stages": {"prod": {"region": "eu-west-1", "logDays": 90}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := stage.ReadSettings(file)
	if err != nil || s.Region("prod") != "eu-west-1" || s.Region("dev") != "" {
		t.Fatalf("got %v", err)
	}
	if err := s.Set("prod", "tableStream", "arn"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	for _, want := range []string{`"tableStream": "arn"`, `"logDays": 90`, `"app": "x"`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %s, %v, want %s in it", text, err, want)
		}
	}
	if err := s.Set("dev", "tableStream", "arn"); err == nil {
		t.Error("stage without an entry: got no error")
	}
	if _, err := stage.ReadSettings(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("missing file: got %v", err)
	}
}
