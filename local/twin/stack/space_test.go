package stack_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// blobs counts the files with the bytes of objects.
func blobs(t *testing.T, data string) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(data, "s3", "blobs"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// halfFull returns a folder whose process was killed. It has one running run, which began
// first, and runs with outputs that ended one after another.
func halfFull(t *testing.T, runs int) (given served, hold, open string, ended []string) {
	t.Helper()
	hold, data := scripts.Pipe(t), t.TempDir()
	mark := filepath.Join(t.TempDir(), "mark")
	given = served{Data: data, Play: "once:" + mark + " wait:" + hold + " output:50000"}
	g := spawn(t, given)
	open = g.post(contract.ExportOptions{})
	g.Await(open, func(s contract.Status) bool { return s.State == "Running" })
	await.Until(t, "mark of the first program", func() bool {
		_, err := os.Stat(mark)
		return err == nil
	})
	for range runs {
		task := g.post(contract.ExportOptions{})
		ended = append(ended, task)
		if status := g.End(task); status.Status != contract.StatusSuccess {
			t.Fatalf("got %+v, want a success", status)
		}
	}
	g.kill(syscall.SIGKILL)
	return given, hold, open, ended
}

// sizeOf returns the size of the records in a folder that no process uses.
func sizeOf(t *testing.T, data string) sqlite.Size {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(data, "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	size, err := db.Size(t.Context())
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return size
}

// TestLimitRemovesRunsThatEnded starts a folder with a limit of 1 byte. Only the running run
// and the tables remain.
func TestLimitRemovesRunsThatEnded(t *testing.T) {
	t.Parallel()
	given, hold, open, ended := halfFull(t, 3)
	given.Now, given.Settings = time.Now().Add(time.Minute), map[string]string{"SORTIE_STORE_LIMIT": "1"}
	g := start(t, given)
	for _, task := range ended {
		await.Until(t, "removal of "+task, func() bool { return g.Call(http.MethodGet, "/status/"+task, "").Status == http.StatusNotFound })
		if answer := g.Call(http.MethodGet, "/download/"+task, ""); answer.Status != http.StatusNotFound {
			t.Errorf("download: got %d, want 404", answer.Status)
		}
	}
	await.Until(t, "removal of the outputs", func() bool { return blobs(t, given.Data) == 0 })
	if status := g.Await(open, func(contract.Status) bool { return true }); status.State != "Running" {
		t.Errorf("run under way: got %+v", status)
	}
	scripts.Release(t, hold)
	if status := g.End(open); status.Status != contract.StatusSuccess || status.Attempt != 1 {
		t.Errorf("run under way: got %+v, want a success", status)
	}
	g.Events(open)
}

// TestLimitRemovesTheOldestFirst starts a folder that is slightly larger than the limit.
func TestLimitRemovesTheOldestFirst(t *testing.T) {
	t.Parallel()
	given, _, _, ended := halfFull(t, 12)
	size := sizeOf(t, given.Data)
	given.Now, given.Settings = time.Now().Add(time.Minute), map[string]string{"SORTIE_STORE_LIMIT": fmt.Sprint(size.Used - 40_000)}
	g := start(t, given)
	await.Until(t, "removal of the oldest run", func() bool {
		return g.Call(http.MethodGet, "/status/"+ended[0], "").Status == http.StatusNotFound
	})
	await.Until(t, "end of the removal", func() bool {
		now, err := g.stack.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now.Used <= size.Used-40_000
	})
	if answer := g.Call(http.MethodGet, "/download/"+ended[11], ""); answer.Status != http.StatusOK {
		t.Errorf("newest run: got %d %s, want its output", answer.Status, answer.Body)
	}
}

// TestFileShrinksAfterRetention ends runs, and restarts the folder after their retention.
func TestFileShrinksAfterRetention(t *testing.T) {
	t.Parallel()
	given, hold, _, _ := halfFull(t, 40)
	scripts.Release(t, hold)
	before := sizeOf(t, given.Data)
	given.Now = time.Now().Add(30 * 24 * time.Hour)
	g := start(t, given)
	await.Until(t, "a smaller file", func() bool {
		size, err := g.stack.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return size.File-size.Used <= 16*4096 && size.File < before.File*3/4
	})
}
