package sqlite_test

import (
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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

var rewrite = flag.Bool("rewrite", false, "write the current record to testdata/record.json; see the README there")

// older copies the database of a folder in testdata. left is the time of its last write.
func older(t *testing.T, folder string) (path string, left time.Time) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", folder, "data", "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "sortie.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", folder, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected struct{ MadeAt time.Time }
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	return path, expected.MadeAt
}

func TestOlderFileIsReadable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		folder, tenant string
		// outputs is the number of runs with bytes to delete. purged is the number of ended
		// runs without.
		outputs, purged int
		// shrinks means that the file needs no Compact.
		shrinks bool
	}{
		{"folder-1", "local", 1, 1, false},
		{"folder-2", "local", 2, 0, false},
		{"folder-3", "default", 2, 0, false},
		{"folder-4", "default", 2, 0, false},
		{"folder-5", "default", 2, 0, false},
		{"folder-6", "default", 2, 0, true},
		{"folder-7", "default", 2, 0, true},
		{"folder-8", "default", 2, 0, true},
	} {
		t.Run(row.folder, func(t *testing.T) {
			t.Parallel()
			path, left := older(t, row.folder)
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
			wantOlderRuns(t, store, row.tenant)
			if done, err := db.Compact(t.Context()); err != nil || done == row.shrinks {
				t.Errorf("got %v, %v, want %v", done, err, !row.shrinks)
			}
			wantOlderRuns(t, store, row.tenant)
			due, _, err := store.Due(t.Context(), left.Add(365*24*time.Hour), "", 100)
			if err != nil || len(due) != 5 {
				t.Errorf("got %d due runs, %v", len(due), err)
			}
			now.Advance(365 * 24 * time.Hour) // every record expires
			if outputs, _, err := store.OutputsDue(t.Context(), now.Now(), "", 100); err != nil || len(outputs) != row.outputs {
				t.Errorf("got %d expired outputs, %v, want %d", len(outputs), err, row.outputs)
			}
			if forgotten, err := store.Purge(t.Context(), now.Now(), 100); err != nil || forgotten != row.purged {
				t.Errorf("got %d purged records, %v, want %d", forgotten, err, row.purged)
			}
		})
	}
}

// wantOlderRuns reads every record of the stored database and all its events.
func wantOlderRuns(t *testing.T, store *sqlite.Store, tenant string) {
	t.Helper()
	runs, _, err := store.List(t.Context(), tenant, port.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	states := map[run.State]int{}
	for _, r := range runs {
		states[r.State]++
		if r.Policy.TimeLimit == 0 || r.Work.PI == "" || r.CreatedAt.IsZero() || (r.State == run.Completed) != (r.Output != nil) {
			t.Errorf("got an incomplete record %+v", r)
		}
		events, err := store.Events(t.Context(), r.Ref(), 0, 1000)
		if err != nil || len(events) != r.EventCount {
			t.Errorf("%s: got %d events, want %d, %v", r.ID, len(events), r.EventCount, err)
		}
		for i, e := range events {
			if e.Seq != i+1 || e.Type == "" || e.State == "" || e.At.IsZero() {
				t.Errorf("got an incomplete event %+v", e)
			}
		}
	}
	want := map[run.State]int{run.Completed: 1, run.Failed: 1, run.Running: 2, run.ContainerCreating: 1, run.Retrying: 1, run.Pending: 1}
	if !reflect.DeepEqual(states, want) {
		t.Errorf("got records %v, want %v", states, want)
	}
	placed, err := store.WithMachine(t.Context(), run.Ref{}, 100)
	for _, p := range placed {
		if r, err := store.Load(t.Context(), p.Run); err != nil || p != port.PlacementOf(r) || p.Machine.App == "" || p.Machine.ID == "" {
			t.Errorf("got placement %+v, %v", p, err)
		}
	}
	if err != nil || len(placed) != 3 {
		t.Errorf("got %d runs with a machine, %v", len(placed), err)
	}
	pools, err := store.Pools(t.Context())
	if err != nil || len(pools) != 1 || pools[0].Held != 3 || pools[0].Queued != 1 {
		t.Errorf("got pools %+v, %v", pools, err)
	}
}

// TestNextMigrationFindsRecords migrates the stored database one version beyond
// the current program, and then opens it with the current one.
func TestNextMigrationFindsRecords(t *testing.T) {
	t.Parallel()
	path, left := older(t, "folder-1")
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
		t.Errorf("got %d runs by the new column, %v", found, err)
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
		t.Errorf("file of the next version: got %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(before) != string(after) {
		t.Errorf("got a changed file, want it untouched, %v", err)
	}
}

// TestRecordOfVersion00 reads record-0.0.json, which is record.json as version
// 0.0 wrote it.
func TestRecordOfVersion00(t *testing.T) {
	t.Parallel()
	was, is := decoded(t, "testdata/record-0.0.json"), decoded(t, "testdata/record.json")
	is.Attempt.Machine = platform.Machine{Runner: "fly", App: "app", ID: "id"}
	is.Attempt.Exit.At = time.Time{}
	if diff := cmp.Diff(is, was, cmpopts.IgnoreUnexported(fault.Fault{})); diff != "" {
		t.Errorf("record of version 0.0: want -, got +\n%s", diff)
	}
}

// decoded reads the record of a file.
func decoded(t *testing.T, name string) run.Run {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStoredRecordStaysReadable reads the record of testdata and writes it
// again without a loss. Fields may be added, but not renamed; a new field has
// its zero value in an older record.
func TestStoredRecordStaysReadable(t *testing.T) {
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

// within fails the test if one JSON value has something that the other lacks.
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
		t.Errorf("%s: was %v, got %v", where, was, is)
	}
}

// fill gives every field a distinct value.
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
			t.Fatalf("%s: fill does not support the kind %s", name, v.Kind())
		}
	}
}
