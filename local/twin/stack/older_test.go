package stack_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// keptFolders are data folders of older programs. Their README describes them.
const keptFolders = "../../../shared/adapter/sqlite/testdata"

// later is the time between the end of the old process and the next start. The downloaded
// output still exists then, and the stuck machine has recovered.
const later = 30 * time.Minute

// kept is the content of expected.json, which describes the folder.
type kept struct {
	MadeAt time.Time `json:"madeAt"`
	// Tasks are the tasks by name.
	Tasks map[string]string `json:"tasks"`
	// Ended are the statuses of the ended tasks. Output is the SHA-256 of the completed task's
	// output. Key and Body are its request.
	Ended  map[string]contract.Status `json:"ended"`
	Output string                     `json:"output"`
	Key    string                     `json:"key"`
	Body   string                     `json:"body"`
}

// olderFolder returns a copy of a kept folder.
func olderFolder(t *testing.T, name string) (string, kept) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(keptFolders, name, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(keptFolders, name, "data"))); err != nil {
		t.Fatal(err)
	}
	closeFolder(t, folder)
	return folder, outside.Decode[kept](t, text)
}

// closeFolder restores the modes of a data folder, which git does not store.
func closeFolder(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOlderFolderResumes opens each folder half an hour after its process was killed. Ended
// runs are unchanged, and the others end.
func TestOlderFolderResumes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"folder-1", "folder-2", "folder-3", "folder-4", "folder-5", "folder-6", "folder-7", "folder-8"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, was := olderFolder(t, name)
			g := start(t, served{Data: folder, Now: was.MadeAt.Add(later), Play: "success"})
			for name, want := range was.Ended {
				if _, id, ok := strings.Cut(want.MachineID, "/"); ok { // older programs stored "app/id"
					want.MachineID = id
				}
				want.BatchID, want.Pool = contract.BatchSingle, "default" // older programs did not store these
				if got := toJSON(t, g.End(want.TaskID)); !bytes.Equal(got, toJSON(t, want)) {
					t.Errorf("%s: got %s, want %+v", name, got, want)
				}
			}
			output := g.Call(http.MethodGet, "/download/"+was.Tasks["completed"], "")
			if sum := sha256.Sum256(output.Body); output.Status != http.StatusOK || hex.EncodeToString(sum[:]) != was.Output {
				t.Errorf("output: got status %d and %d other bytes", output.Status, len(output.Body))
			}
			answer := g.Call(http.MethodPost, "/export/mods", was.Body, "Idempotency-Key", was.Key)
			if answer.Status != http.StatusOK || outside.Decode[contract.ExportAccepted](t, answer.Body).TaskID != was.Tasks["completed"] {
				t.Errorf("repeated request: got %d %s, want 200 and the same task", answer.Status, answer.Body)
			}
			for name, task := range was.Tasks {
				if status := g.End(task); name != "failed" && status.Status != contract.StatusSuccess {
					t.Errorf("%s: got %+v, want a success", name, status)
				}
				g.Events(task)
			}
			wantProof(t, g)
		})
	}
}

// wantProof exports the stream of events and verifies it with the published keys up to its last
// checkpoint. The stream may begin with events of an older program. The copy has another epoch
// than the folder.
func wantProof(t *testing.T, g *target) {
	t.Helper()
	keys, err := events.ParseKeys(g.Call(http.MethodGet, "/.well-known/jwks.json", "").Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := g.Call(http.MethodGet, "/v1/events?after=earliest&limit=1000", "", "Accept", "application/vnd.dsse+x-ndjson")
	var file, end []byte
	for line := range bytes.Lines(answer.Body) {
		if bytes.HasPrefix(line, []byte(`{"checkpoint"`)) {
			end = slices.Concat(file, line)
		} else {
			file = append(file, line...)
		}
	}
	proof, err := events.Verify(t.Context(), bytes.NewReader(end), keys)
	if err != nil || proof.From != 0 || proof.To == 0 {
		t.Errorf("got the proof %+v, %v, want one from the first event", proof, err)
	}
}

func TestNewerFolderIsRefusedUnchanged(t *testing.T) {
	t.Parallel()
	for _, newer := range []struct{ name, file, owner string }{
		{"records", "sortie.db", "store"}, {"executions", "sortie.db", "engine"}, {"objects", "s3/catalog.db", "s3"},
	} {
		t.Run(newer.name, func(t *testing.T) {
			t.Parallel()
			folder, was := olderFolder(t, "folder-1")
			upToDate(t, folder)
			db, err := sqlite.Open(t.Context(), filepath.Join(folder, newer.file))
			if err != nil {
				t.Fatal(err)
			}
			err = db.Write(t.Context(), func(tx *sqlite.Tx) error {
				_, err := tx.Exec("UPDATE migrations SET version = 1000 WHERE owner = ?", newer.owner)
				return err
			})
			if err != nil || db.Close() != nil {
				t.Fatal(err)
			}
			before := prints(t, folder)
			config, err := configure(served{Data: folder, Now: was.MadeAt.Add(later)})
			if err != nil {
				t.Fatal(err)
			}
			if err := refusal(t, config); !strings.Contains(err, "newer version of sortie") || !strings.Contains(err, folder) {
				t.Errorf("got %q, want a newer version of the folder", err)
			}
			if after := prints(t, folder); !maps.Equal(before, after) {
				t.Errorf("got the files\n%v\nwant\n%v", after, before)
			}
		})
	}
}

// upToDate migrates the records of a folder to the current version.
func upToDate(t *testing.T, folder string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(folder, "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.NewStore(t.Context(), db, clock.System{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// prints returns the hash of each file in a folder, except locks.
func prints(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		all[strings.TrimPrefix(path, folder)] = hex.EncodeToString(sum[:4])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func toJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}
