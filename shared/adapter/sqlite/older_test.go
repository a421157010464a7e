package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"

	"github.com/sortie-dev/sortie/shared/run"
)

var rewrite = flag.Bool("rewrite", false, "keep today's record in testdata/record.json; see the README there")

// older is a copy of a kept database, and when it was left.
func older(t *testing.T) (path string, left time.Time) {
	t.Helper()
	data, err := os.ReadFile("testdata/folder-1/data/sortie.db")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "sortie.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/folder-1/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected struct{ MadeAt time.Time }
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	return path, expected.MadeAt
}

func TestAnOlderFilesRecordsAreRead(t *testing.T) {
	t.Parallel()
	path, left := older(t)
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := clock.NewVirtual(left)
	store, err := sqlite.NewStore(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	wantOlderRuns(t, store)
	due, err := store.Due(t.Context(), left.Add(365*24*time.Hour), 100)
	if err != nil || len(due) != 5 {
		t.Errorf("%d runs are under way, %v", len(due), err)
	}
	now.Advance(365 * 24 * time.Hour) // no record is for ever
	if outputs, err := store.OutputsDue(t.Context(), now.Now(), 100); err != nil || len(outputs) != 1 {
		t.Errorf("%d outputs have expired, %v", len(outputs), err)
	}
	if forgotten, err := store.Purge(t.Context(), now.Now(), 100); err != nil || forgotten != 1 {
		t.Errorf("%d records are forgotten, %v", forgotten, err)
	}
}

// wantOlderRuns reads every record of the kept database, and all its events.
func wantOlderRuns(t *testing.T, store *sqlite.Store) {
	t.Helper()
	runs, _, err := store.List(t.Context(), "local", port.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	states := map[run.State]int{}
	for _, r := range runs {
		states[r.State]++
		if r.Policy.TimeLimit == 0 || r.Work.PI == "" || r.CreatedAt.IsZero() || (r.State == run.Completed) != (r.Output != nil) {
			t.Errorf("a record has lost something: %+v", r)
		}
		events, err := store.Events(t.Context(), r.Ref(), 0, 1000)
		if err != nil || len(events) != r.EventCount {
			t.Errorf("%s has %d events of %d, %v", r.ID, len(events), r.EventCount, err)
		}
		for i, e := range events {
			if e.Seq != i+1 || e.Type == "" || e.State == "" || e.At.IsZero() {
				t.Errorf("an event has lost something: %+v", e)
			}
		}
	}
	want := map[run.State]int{run.Completed: 1, run.Failed: 1, run.Running: 2, run.ContainerCreating: 1, run.Retrying: 1, run.Pending: 1}
	if !reflect.DeepEqual(states, want) {
		t.Errorf("the records are %v, want %v", states, want)
	}
	placed, err := store.WithMachine(t.Context(), run.Ref{}, 100)
	for _, p := range placed {
		if r, err := store.Load(t.Context(), p.Run); err != nil || p != port.PlacementOf(r) || p.MachineID == "" {
			t.Errorf("%+v has a machine, %v", p, err)
		}
	}
	if err != nil || len(placed) != 3 {
		t.Errorf("%d runs have a machine, %v", len(placed), err)
	}
	pools, err := store.Pools(t.Context())
	if err != nil || len(pools) != 1 || pools[0].Held != 3 || pools[0].Queued != 1 {
		t.Errorf("the pools are %+v, %v", pools, err)
	}
}

// TestTheNextStepFindsItsRecords takes the kept database one version further
// than today's program, as the next program would, and then back to this one.
func TestTheNextStepFindsItsRecords(t *testing.T) {
	t.Parallel()
	path, left := older(t)
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	next := append(sqlite.StoreSteps(), `
		ALTER TABLE runs ADD COLUMN format TEXT;
		UPDATE runs SET format = doc ->> '$.work.format';
		CREATE INDEX runs_format ON runs (tenant, format);`)
	if err := db.Migrate(t.Context(), "store", next); err != nil {
		t.Fatal(err)
	}
	var found int
	err = db.Read(t.Context(), func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM runs WHERE tenant = 'local' AND format = 'mods'").Scan(&found)
	})
	if err != nil || found != 7 {
		t.Errorf("by the new column there are %d runs, %v", found, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if db, err = sqlite.Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.NewStore(t.Context(), db, clock.NewVirtual(left)); !errors.Is(err, sqlite.ErrNewer) || !strings.Contains(err.Error(), path) {
		t.Errorf("this program, on the next one's file: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(before) != string(after) {
		t.Errorf("the newer file was changed, %v", err)
	}
}

// TestARecordOfVersion00IsRead: record-0.0.json is record.json with the names of
// version 0.0.
func TestARecordOfVersion00IsRead(t *testing.T) {
	t.Parallel()
	var records [2][]byte
	for i, name := range []string{"testdata/record-0.0.json", "testdata/record.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sqlite.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if records[i], err = sqlite.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(records[0], records[1]) {
		t.Errorf("record of version 0.0: got %s, want %s", records[0], records[1])
	}
}

// TestARecordOfTodayIsReadForEver holds the program to the record that is kept:
// what it has in it is read, and written again as it was. Fields may be added,
// none renamed, and a new one has a zero value in an older record.
func TestARecordOfTodayIsReadForEver(t *testing.T) {
	t.Parallel()
	const name = "testdata/record.json"
	if *rewrite {
		var r run.Run
		fill(t, reflect.ValueOf(&r).Elem(), "run")
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.Decode(kept)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sqlite.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	var was, is any
	if err := errors.Join(json.Unmarshal(kept, &was), json.Unmarshal(again, &is)); err != nil {
		t.Fatal(err)
	}
	within(t, "record", was, is)
}

// within fails where something of one JSON value is not in the other.
func within(t *testing.T, where string, was, is any) {
	t.Helper()
	if object, ok := was.(map[string]any); ok {
		now, _ := is.(map[string]any)
		for name, value := range object {
			within(t, where+"."+name, value, now[name])
		}
		return
	}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("%s was %v and is %v", where, was, is)
	}
}

// fill gives every field a value of its own.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Date(2026, 11, 21, 10, 0, len(name)%60, 7, time.UTC)
		return
	case *json.RawMessage:
		*at = json.RawMessage(fmt.Sprintf(`{"name":%q}`, name))
		return
	}
	switch v.Kind() { //nolint:exhaustive // what a record is made of; others fail below
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, name)
		fill(t, value, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(name)))
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		if v.CanSet() && v.Kind() != reflect.Interface {
			t.Fatalf("%s: a record has no such values so far: %s", name, v.Kind())
		}
	}
}
