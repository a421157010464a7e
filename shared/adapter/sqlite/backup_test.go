package sqlite_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// TestBackupOfAnotherProcess copies the file of a process that writes, and of
// one that was killed.
func TestBackupOfAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	lines := bufio.NewScanner(out)
	acknowledged := map[int]bool{}
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("got output %q, want a number", lines.Text())
		}
		switch acknowledged[n] = true; len(acknowledged) {
		case 200, 400:
			wantCopy(t, path, filepath.Join(folder, strconv.Itoa(n)), acknowledged)
		case 600:
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	wantCopy(t, path, filepath.Join(folder, "after the kill"), acknowledged)
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 3 {
		t.Errorf("got files %v, %v; want the three copies only", entries, err)
	}
	wantIn(t, open(t, path), acknowledged) // the original is intact
}

// wantCopy creates a backup, and checks that a copy of it contains the numbers.
// The backup itself is not opened.
func wantCopy(t *testing.T, path, dst string, numbers map[int]bool) {
	t.Helper()
	if err := sqlite.BackupFile(t.Context(), path, dst); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dst)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got file %v, %v; want mode 0600", info.Mode(), err)
	}
	again := filepath.Join(t.TempDir(), "again.db")
	if err := sqlite.BackupFile(t.Context(), dst, again); err != nil {
		t.Fatal(err)
	}
	wantIn(t, open(t, again), numbers)
}

func wantIn(t *testing.T, db *sqlite.DB, want map[int]bool) {
	t.Helper()
	found := map[int]bool{}
	for _, n := range numbers(t, db) {
		found[n] = true
	}
	for n := range want {
		if !found[n] {
			t.Errorf("got no row %d, which was acknowledged", n)
		}
	}
}

func TestBackupRequiresADatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	garbage := filepath.Join(folder, "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("this is not a database. ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		filepath.Join(folder, "nothing"): fs.ErrNotExist, garbage: sqlite.ErrDamaged,
	} {
		if err := sqlite.BackupFile(t.Context(), path, filepath.Join(folder, "copy")); !errors.Is(err, want) {
			t.Errorf("backup of %s: got %v", path, err)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("got files %v, %v", entries, err)
	}
}
