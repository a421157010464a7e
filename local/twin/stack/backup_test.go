package stack_test

import (
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestBackupResumesInAnotherFolder backs up the records of a busy stack in another process. A
// new folder without machines, keys and outputs resumes from the backup.
func TestBackupResumesInAnotherFolder(t *testing.T) {
	t.Parallel()
	hold, data, elsewhere := scripts.Pipe(t), t.TempDir(), t.TempDir()
	settings := map[string]string{
		"SORTIE_MAX_MACHINES": "2", "SORTIE_START_TIMEOUT": "10s", "SORTIE_FURTHER_STARTS": "20", "SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "1s",
	}
	first := spawn(t, served{Data: data, Settings: settings, Play: "success"})
	done := first.post(contract.ExportOptions{})
	ended := first.End(done)
	events := first.Events(done)
	first.kill(syscall.SIGTERM)

	second := spawn(t, served{Data: data, Settings: settings, Play: "wait:" + hold + " success"})
	var open []string
	for range 4 {
		open = append(open, second.post(contract.ExportOptions{}))
	}
	for _, task := range open {
		second.Await(task, func(s contract.Status) bool { return s.State == "Running" || s.QueuePosition != nil })
	}
	if err := sqlite.BackupFile(t.Context(), filepath.Join(data, "sortie.db"), filepath.Join(elsewhere, "sortie.db")); err != nil {
		t.Fatal(err)
	}
	closeFolder(t, elsewhere)
	scripts.Release(t, hold)
	for _, task := range open {
		if status := second.End(task); status.Status != contract.StatusSuccess || status.Attempt != 1 {
			t.Errorf("during the backup, %s: got %+v, want a success in attempt 1", task, status)
		}
	}

	copied := spawn(t, served{Data: elsewhere, Settings: settings, Play: "success"})
	if status := copied.End(done); !reflect.DeepEqual(status, ended) || !reflect.DeepEqual(copied.Events(done), events) {
		t.Errorf("ended run: got %+v, want %+v", status, ended)
	}
	for _, task := range open {
		if status := copied.End(task); status.Status != contract.StatusSuccess {
			t.Errorf("from the backup, %s: got %+v, want a success", task, status)
		}
		copied.Events(task)
	}
}
