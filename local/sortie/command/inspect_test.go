package command_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// stored is a run that waits with a task token.
func stored() port.Write {
	w := port.WriteOf(run.New(run.Run{Tenant: "default", ID: "a", TaskID: taskID, Work: spec.Work{Kind: "export", Format: "mods"}}, begin))
	w.Run.Wait = run.Wait{Generation: 1, Step: run.StepRunning, Token: "secret-token"}
	w.Heartbeat.Open = &run.Heartbeat{Attempt: 1, WorkerID: "w", At: begin, Token: "secret-token"}
	return w
}

func TestInspectShowsARunOfADataFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(data, stack.RecordsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // inspect runs while the folder is in use
	store, err := sqlite.NewStore(t.Context(), db, clock.NewVirtual(begin.Add(time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(t.Context(), stored(), &port.IdempotencyKey{Key: "k", Digest: "d"}); err != nil {
		t.Fatal(err)
	}
	got := sortie(t, nil, "", "inspect", taskID, "--data", data)
	var shown struct {
		Record          run.Run
		Events          []run.Event
		Heartbeats      []struct{ Worker, Token string }
		IdempotencyKeys []struct{ Key string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil || got.code != 0 {
		t.Fatalf("got %+v, error %v", got, err)
	}
	if shown.Record.State != run.Pending || len(shown.Events) != 1 || len(shown.Heartbeats) != 1 || len(shown.IdempotencyKeys) != 1 {
		t.Errorf("got %+v", shown)
	}
	if strings.Contains(got.stdout, "secret-token") || shown.Heartbeats[0].Token != "redacted" {
		t.Errorf("got a task token in\n%s", got.stdout)
	}
	if other := sortie(t, nil, "", "inspect", "other", "--data", data); other.code != 2 || !strings.Contains(other.stderr, "other") {
		t.Errorf("unknown task: got %+v, want exit code 2", other)
	}
}

func TestInspectShowsItemsOfATable(t *testing.T) {
	t.Parallel()
	w := stored()
	packed, err := format.Pack(w.Run)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := format.Encode(w.Run)
	if err != nil {
		t.Fatal(err)
	}
	event, err := format.PackEvent(w.Events[0])
	if err != nil {
		t.Fatal(err)
	}
	key, text := map[string]any{"S": "default#run#a"}, func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	events := map[string]any{"L": []any{map[string]any{"B": event}}}
	input := text(map[string]any{"Item": map[string]any{"pk": key, "doc": map[string]any{"B": packed}, "ev": events}}) + "\n" +
		text(map[string]any{"pk": key, "doc": map[string]any{"S": string(plain)}, "ev": events}) + "\n" +
		text(map[string]any{"pk": key, "attempt": map[string]any{"N": "1"}, "token": map[string]any{"S": "secret-token"}})
	got := sortie(t, nil, input, "inspect", "-")
	var items [3]map[string]any
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	for i := range items {
		if err := decoder.Decode(&items[i]); err != nil {
			t.Fatalf("item %d of %+v: %v", i+1, got, err)
		}
	}
	if got.code != 0 || decoder.More() || strings.Contains(got.stdout, "secret-token") {
		t.Fatalf("got %+v, want three items without a token", got)
	}
	if diff := cmp.Diff(items[0], items[1]); diff != "" {
		t.Errorf("the packed and the plain item differ:\n%s", diff)
	}
	for _, want := range []string{`"state": "Pending"`, `"type": "job.accepted"`, `"token": "redacted"`} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got %s, want %s", got.stdout, want)
		}
	}
	for _, input := range []string{"", "{", "[]", "{}", `{"doc":{"B":"CQ=="}}`} {
		if got := sortie(t, nil, input, "inspect", "-"); got.code != 2 || got.stdout != "" {
			t.Errorf("%q: got %+v, want exit code 2", input, got)
		}
	}
}
