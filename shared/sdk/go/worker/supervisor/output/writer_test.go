package output_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/output"
)

func TestShortOutputIsKeptWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := output.NewWriter(dir, 64)
	for _, part := range []string{"one\n", "two\n", strings.Repeat("x", 40)} {
		if n, err := w.Write([]byte(part)); err != nil || n != len(part) {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := output.Read(dir)
	if want := "one\ntwo\n" + strings.Repeat("x", 40); err != nil || string(got) != want {
		t.Errorf("Read = %q, %v; want %q", got, err, want)
	}
}

func TestLongOutputLosesItsMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := output.NewWriter(dir, 400)
	var all strings.Builder
	for i := range 500 {
		line := fmt.Sprintf("line %04d\n", i)
		all.WriteString(line)
		if _, err := w.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := output.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(got), "\n[")
	count, tail, _ := strings.Cut(rest, " bytes are cut out here]\n")
	if !found || !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) {
		t.Fatalf("head or tail is not what was written: %q", got)
	}
	if want := fmt.Sprint(all.Len() - len(head) - len(tail)); count != want {
		t.Errorf("the cut says %s bytes, want %s", count, want)
	}
	if len(head) < 100 || len(tail) < 100 {
		t.Errorf("kept %d bytes of the head and %d of the tail", len(head), len(tail))
	}
	if kept := onDisk(t, dir); kept > 400 {
		t.Errorf("%d bytes on disk, limit 400", kept)
	}
}

func TestLaterWriterContinues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := ""
	for i := range 3 {
		w := output.NewWriter(dir, 64)
		text := fmt.Sprintf("start %d of this one\n", i)
		want += text
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := output.Read(dir); err != nil || string(got) != want {
		t.Errorf("Read = %q, %v; want %q", got, err, want)
	}
	if err := output.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := output.Read(dir); err != nil || len(got) != 0 {
		t.Errorf("after Remove: %q, %v", got, err)
	}
}

func TestEmptyOutput(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"empty": t.TempDir(), "missing": filepath.Join(t.TempDir(), "no")} {
		if got, err := output.Read(dir); err != nil || len(got) != 0 {
			t.Errorf("%s: Read = %q, %v", name, got, err)
		}
	}
}

func onDisk(t *testing.T, dir string) int64 {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}
