package durable_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

type record struct{ Name string }

func TestWriteReadReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record.json")

	var got record
	if err := durable.Read(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before the first write: %v", err)
	}
	for name, write := range map[string]func(string, any) error{"written": durable.Write, "placed": durable.Place} {
		if err := write(path, record{name}); err != nil {
			t.Fatal(err)
		}
		if err := durable.Read(path, &got); err != nil || got.Name != name {
			t.Fatalf("got %+v, %v; want %s", got, err, name)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if _, err := os.Stat(path + durable.Suffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leftover temporary file: %v", err)
	}
}

func TestDamagedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(path, []byte(`{"Name":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.Read(path, &record{}); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("err = %v, want ErrDamaged", err)
	}
}

func TestNewestRecordCounts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"one record without a line break": {`{"Name":"a"}`, "a"},
		"one record of several lines":     {"{\"Name\":\n\"a\"}", "a"},
		"several":                         {"\n{\"Name\":\"a\"}\n{\"Name\":\"b\"}", "b"},
		"the last is incomplete":          {"\n{\"Name\":\"a\"}\n{\"Name\":\"b", "a"},
		"one after an incomplete one":     {"\n{\"Name\":\"a\"}\n{\"Na\n{\"Name\":\"c\"}", "c"},
		"a loss of power after the first": {"\n{\"Name\":\"a\"}\n\x00\x00\x00", "a"},
		"a killed Compact":                {"\n{\"Name\":\"c\"\"secret\"}\n{\"Name\":\"b\"}\n{\"Name\":\"c\"}", "c"},
		"none":                            {"\n{\"Name\"\n{", ""},
		"an empty file":                   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "record.json")
			if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var got record
			if err := durable.Last(path, &got); got.Name != row.want || errors.Is(err, durable.ErrDamaged) != (row.want == "") {
				t.Errorf("got %+v, %v, want %q", got, err, row.want)
			}
			for _, write := range []func(string, any) error{durable.Append, durable.Append, durable.Compact} {
				want := row.want + "next"
				if err := write(path, record{want}); err != nil {
					t.Fatal(err)
				}
				if err := durable.Last(path, &got); err != nil || got.Name != want {
					t.Errorf("got %+v, %v, want %s", got, err, want)
				}
			}
			if text, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(text)) != `{"Name":"`+row.want+`next"}` {
				t.Errorf("got the file %q, %v after Compact, want the newest record alone", text, err)
			}
		})
	}
}

func TestAppendedFileStaysSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record.json")
	for i := range 200 {
		want := strconv.Itoa(i) + strings.Repeat("x", 1000)
		if err := durable.Append(path, record{want}); err != nil {
			t.Fatal(err)
		}
		var got record
		if err := durable.Last(path, &got); err != nil || got.Name != want {
			t.Fatalf("got %+v, %v after record %d", got, err, i)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 64<<10 || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want at most 64 KiB with mode 0600", info, err)
	}
}

// TestReplacedFileIsNotFollowed has files that a program puts in the place of a record. The next
// record is stored nevertheless, and the other file is unchanged.
func TestReplacedFileIsNotFollowed(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(other, path string) error{
		"a symbolic link": os.Symlink,
		"a hard link":     os.Link,
		"a pipe without a reader": func(_, path string) error {
			return syscall.Mkfifo(path, 0o600)
		},
		"a pipe with a reader": func(_, path string) error {
			err := syscall.Mkfifo(path, 0o600)
			if err == nil {
				var reader *os.File
				reader, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
				t.Cleanup(func() { _ = reader.Close() })
			}
			return err
		},
	} {
		for kind, write := range map[string]func(string, any) error{"Append": durable.Append, "Compact": durable.Compact} {
			t.Run(kind+" to "+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path, other := filepath.Join(dir, "record.json"), filepath.Join(dir, "other")
				if err := errors.Join(os.WriteFile(other, []byte("of another"), 0o600), plant(other, path)); err != nil {
					t.Fatal(err)
				}
				var got record
				if err := errors.Join(write(path, record{"a"}), durable.Last(path, &got)); err != nil || got.Name != "a" {
					t.Errorf("got %+v, %v, want the record", got, err)
				}
				if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
					t.Errorf("got %v, %v, want a regular file", info, err)
				}
				if text, err := os.ReadFile(other); err != nil || string(text) != "of another" {
					t.Errorf("got %q, %v in the other file, want it unchanged", text, err)
				}
			})
		}
	}
}

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.TryLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("the second lock: %v, want ErrLocked", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := durable.TryLock(path)
	if err != nil {
		t.Fatalf("after the unlock: %v", err)
	}
	if err := again.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestClaimIsSeenByOtherProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "claim")
	if claimed, err := durable.Claimed(path); claimed || err != nil {
		t.Errorf("no file: %v, %v", claimed, err)
	}
	claim, err := durable.TryClaim(path)
	if err != nil {
		t.Fatal(err)
	}
	look := func() string {
		out, err := exec.Command(os.Args[0], "-test.run=^TestLookFromOutside$", "-test.v", "--", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := look(); !strings.Contains(got, "claimed: true, locked by another process") {
		t.Errorf("while it is held: %s", got)
	}
	if err := claim.Unlock(); err != nil {
		t.Fatal(err)
	}
	if got := look(); !strings.Contains(got, "claimed: false, <nil>") {
		t.Errorf("after the unlock: %s", got)
	}
}

// TestLookFromOutside is the other process of TestClaimIsSeenByOtherProcesses. Run on its own,
// it checks a file that does not exist.
func TestLookFromOutside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "claim")
	if flag.NArg() > 0 {
		path = flag.Arg(0)
	}
	claimed, err := durable.Claimed(path)
	if err != nil {
		t.Fatal(err)
	}
	claim, err := durable.TryClaim(path)
	if (err != nil) != claimed {
		t.Errorf("claimed: %v, but TryClaim says %v", claimed, err)
	}
	t.Logf("claimed: %v, %v", claimed, err)
	if claim != nil {
		if err := claim.Unlock(); err != nil {
			t.Error(err)
		}
	}
}
