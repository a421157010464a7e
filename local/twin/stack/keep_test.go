package stack_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

var keep = flag.String("keep", "", "create a data folder for older_test.go in this folder, which must not exist")

// TestKeepAFolder creates a folder for TestOlderFolderResumes with the current program. Run it
// before a change of the schema. It does nothing without -keep.
func TestKeepAFolder(t *testing.T) {
	t.Parallel()
	if *keep == "" {
		return
	}
	folder, was := t.TempDir(), kept{
		Tasks: map[string]string{}, Ended: map[string]contract.Status{},
		Key: "kept", Body: fmt.Sprintf(`{"pi":%q,"options":{"recursive":false}}`, samples.SampleRoot),
	}
	keepEnded(t, folder, &was)
	keepUnderWay(t, folder, &was)
	for _, name := range []string{"sortie.db", "s3/catalog.db"} {
		compact(t, filepath.Join(folder, filepath.FromSlash(name)))
	}
	disown(t, folder)
	if err := os.CopyFS(filepath.Join(*keep, "data"), withoutLocks{os.DirFS(folder)}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*keep, "expected.json"), toJSON(t, was), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keepEnded creates a successful run and a failed one.
func keepEnded(t *testing.T, folder string, was *kept) {
	t.Helper()
	g := spawn(t, served{Data: folder})
	answer := g.Call(http.MethodPost, "/export/mods", was.Body, "Idempotency-Key", was.Key)
	if answer.Status != http.StatusAccepted {
		t.Fatalf("export: got %d %s, want 202", answer.Status, answer.Body)
	}
	was.Tasks["completed"] = outside.Decode[contract.ExportAccepted](t, answer.Body).TaskID
	was.Tasks["failed"] = g.Export("mods", contract.ExportRequest{PI: "01K9XVBAQZF9EHDRXGBEADTZZZ"})
	for name, task := range was.Tasks {
		was.Ended[name] = g.End(task)
	}
	output := g.Call(http.MethodGet, "/download/"+was.Tasks["completed"], "")
	sum := sha256.Sum256(output.Body)
	was.Output = hex.EncodeToString(sum[:])
	was.Ended["completed"] = g.End(was.Tasks["completed"])
	g.kill(syscall.SIGTERM)
}

// keepUnderWay creates runs in other states and kills all processes.
func keepUnderWay(t *testing.T, folder string, was *kept) {
	t.Helper()
	mark, hold := filepath.Join(t.TempDir(), "mark"), scripts.Pipe(t)
	g := spawn(t, served{Data: folder, Play: "once:" + mark + " exit:3 wait:" + hold + " success", Settings: map[string]string{
		"SORTIE_MAX_MACHINES": "3", "SORTIE_START_TIMEOUT": "2h", "SORTIE_TIME_LIMIT": "10h",
		"SORTIE_RETRY_DELAY": "4s", "SORTIE_RETRY_MAX_DELAY": "4s",
	}})
	doing := func(name, state string) {
		t.Helper()
		was.Tasks[name] = g.post(contract.ExportOptions{})
		g.Await(was.Tasks[name], func(s contract.Status) bool {
			return s.State == state && (state != "Pending" || s.QueuePosition != nil)
		})
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	doing("running", "Running")
	stick(t, g, faults.Rule{Kind: faults.StuckCreated, For: 20 * time.Minute})
	doing("creating", "ContainerCreating")
	g.Await(was.Tasks["creating"], func(s contract.Status) bool { return s.MachineID != "" })
	stick(t, g)
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	doing("retrying", "Retrying")
	doing("running too", "Running")
	doing("queued", "Pending")
	g.kill(syscall.SIGKILL)
	was.MadeAt = time.Now().UTC().Truncate(time.Second)
	starts, err := filepath.Glob(filepath.Join(folder, "machines/machines/*/start.json"))
	if err != nil || len(starts) != 2 {
		t.Fatalf("got %d running machines (%v), want 2", len(starts), err)
	}
	for _, path := range starts {
		var start struct{ Session int }
		if err := durable.Read(path, &start); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(start.Session, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// stick injects the faults in the machines API.
func stick(t *testing.T, g *child, rules ...faults.Rule) {
	t.Helper()
	machines, _, err := outside.LocalStack(g.Addresses)
	if err != nil {
		t.Fatal(err)
	}
	if err := machines.SetFaults(t.Context(), faults.Plan{Rules: rules}); err != nil {
		t.Fatal(err)
	}
}

// compact merges the write-ahead log of a killed process into its database file and shrinks the
// file.
func compact(t *testing.T, path string) {
	t.Helper()
	small := path + ".small"
	if err := sqlite.BackupFile(t.Context(), path, small); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(small, path); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path) // sets the write-ahead mode again
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
}

// disown replaces the machines' program by a path that does not exist, so that the folder runs
// no program.
func disown(t *testing.T, folder string) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join(folder, "machines/machines/*/machine.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range records {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte(executable), []byte("/nowhere/worker"))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutLocks hides lock files.
type withoutLocks struct{ fs.FS }

func (w withoutLocks) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	var list []fs.DirEntry
	for _, entry := range entries {
		if n := entry.Name(); !strings.HasSuffix(n, ".lock") && n != "lock" {
			list = append(list, entry)
		}
	}
	return list, err
}

// refusal returns the error of a stack that fails to start.
func refusal(t *testing.T, config stack.Config) string {
	t.Helper()
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		return err.Error()
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	return "the stack starts"
}
