//go:build localstack

package acceptance

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// operates uses the operations of "sortie stage": it drains the stage, restores its table,
// deploys with the restored table, and empties the buckets.
func (w *world) operates(t *testing.T) {
	client := patient{w, "operated"}
	before, err := client.begin(t.Context(), "operated-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.end(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	s := w.found(t)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := string(outside.Encode(t, contract.ExportRequest{PI: samples.SampleRoot, BatchID: new("drained")}))
	if code, text, err := client.call(t.Context(), http.MethodPost, "/export/mods", []byte(body), "drained-1"); err != nil || code < http.StatusInternalServerError {
		t.Errorf("drained: got %d %s, %v, want a server error", code, text, err)
	}
	if err := s.AwaitIdle(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	assembly := func() stage.Assembly {
		a, err := stage.ReadAssembly(filepath.Join(w.server.Dir, "deployment", "cdk.out"), w.stage)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if found := stage.Removals(s.Template, assembly().Template); len(found) > 0 {
		t.Errorf("the same template: got removals %v, want none", found)
	}
	stream := w.restores(t, s)
	args := []string{"deploy", "--release", "third", "--stack", "tableStream=" + stream}
	for name, value := range Settings() {
		args = append(args, "--setting", name+"="+value)
	}
	if said, err := exec.CommandContext(t.Context(), w.program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if found := stage.Removals(s.Template, assembly().Template); stage.Check(found, nil) == nil || stage.Check(found, []string{"table"}) != nil {
		t.Errorf("the restored table: got removals %v, want the table only", found)
	}
	if err := errors.Join(s.Open(t.Context()), w.found(t).Claim(t.Context())); err != nil {
		t.Fatal(err)
	}
	after, err := client.begin(t.Context(), "operated-2")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{before, after} {
		status, err := client.end(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		w.wellEnded(t, status)
	}
	deleted, err := w.found(t).Empty(t.Context())
	if err != nil || deleted == 0 {
		t.Errorf("got %d deleted objects, %v, want some", deleted, err)
	}
	if again, err := w.found(t).Empty(t.Context()); err != nil || again != 0 {
		t.Errorf("emptied again: got %d deleted objects, %v, want 0", again, err)
	}
}

func (w *world) found(t *testing.T) *stage.Stage {
	t.Helper()
	s, err := stage.Find(t.Context(), w.aws, w.stage, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// restores copies the stage's table to another one and completes it, because DynamoDB Local
// cannot restore. It returns the stream.
func (w *world) restores(t *testing.T, s *stage.Stage) string {
	t.Helper()
	const target = "sortie-restored"
	ask := func(operation string, input, output any) {
		awstest.Prepare(t, w.aws, "DynamoDB_20120810."+operation, input, output)
	}
	var is struct{ Table map[string]any }
	ask("DescribeTable", map[string]any{"TableName": s.Outputs["TableName"]}, &is)
	created := map[string]any{"TableName": target, "BillingMode": "PAY_PER_REQUEST"}
	for _, key := range []string{"KeySchema", "AttributeDefinitions"} {
		created[key] = is.Table[key]
	}
	var indexes []map[string]any
	for _, index := range is.Table["GlobalSecondaryIndexes"].([]any) {
		kept := map[string]any{}
		for _, key := range []string{"IndexName", "KeySchema", "Projection"} {
			kept[key] = index.(map[string]any)[key]
		}
		indexes = append(indexes, kept)
	}
	created["GlobalSecondaryIndexes"] = indexes
	ask("CreateTable", created, nil)
	var start json.RawMessage
	for {
		page := map[string]any{"TableName": s.Outputs["TableName"]}
		if start != nil {
			page["ExclusiveStartKey"] = start
		}
		var items struct {
			Items            []map[string]any
			LastEvaluatedKey json.RawMessage
		}
		ask("Scan", page, &items)
		for _, item := range items.Items {
			ask("PutItem", map[string]any{"TableName": target, "Item": item}, nil)
		}
		if start = items.LastEvaluatedKey; start == nil {
			break
		}
	}
	stream, err := s.Restore(t.Context(), stage.Restoration{Target: target}, func(step string) { t.Log(step) })
	if err != nil || stream == "" {
		t.Fatalf("got stream %q, %v", stream, err)
	}
	return stream
}
