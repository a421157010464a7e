package secretfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func folder(t *testing.T) secretfile.Folder {
	t.Helper()
	return secretfile.Folder(filepath.Join(t.TempDir(), "secrets"))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	porttest.Secrets(t, func(t *testing.T) porttest.SecretsHarness {
		f := folder(t)
		return porttest.SecretsHarness{
			Secrets: f,
			Put:     func(tenant, name, value string) { check(t, f.Put(tenant, name, value)) },
			Delete:  func(tenant, name string) { check(t, f.Delete(tenant, name)) },
		}
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	f := folder(t)
	if names, err := f.List("default"); err != nil || len(names) != 0 {
		t.Errorf("without a folder: got %v, %v, want no names", names, err)
	}
	for _, name := range []string{"b", "a", "c"} {
		check(t, f.Put("default", name, "value"))
	}
	check(t, f.Put("other", "d", "value"))
	check(t, f.Delete("default", "c"))
	check(t, os.WriteFile(filepath.Join(string(f), "default", ".partial-1"), nil, 0o600))
	if names, err := f.List("default"); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("got %v, %v, want a and b", names, err)
	}
	if err := f.Delete("default", "c"); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("second delete: got %v, want ErrNotFound", err)
	}
}

func TestInvalidSecretIsNotStored(t *testing.T) {
	t.Parallel()
	f := folder(t)
	for name, row := range map[string][3]string{
		"empty value":      {"default", "key", ""},
		"long value":       {"default", "key", strings.Repeat("x", limit.Secret+1)},
		"NUL":              {"default", "key", "a\x00b"},
		"not UTF-8":        {"default", "key", "a\xffb"},
		"malformed name":   {"default", "../key", "value"},
		"hidden name":      {"default", ".partial-key", "value"},
		"malformed tenant": {"..", "key", "value"},
	} {
		if err := f.Put(row[0], row[1], row[2]); err == nil || row[2] != "" && strings.Contains(err.Error(), row[2]) {
			t.Errorf("%s: got %v, want an error without the value", name, err)
		}
	}
	if names, err := f.List("default"); err != nil || len(names) != 0 {
		t.Errorf("got names %v, %v, want none stored", names, err)
	}
}

func TestFileIsPrivate(t *testing.T) {
	t.Parallel()
	f := folder(t)
	check(t, f.Put("default", "key", "value"))
	path := filepath.Join(string(f), "default", "key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	check(t, os.Chmod(path, 0o644)) //nolint:gosec // G302: the point of the test
	if value, err := f.Secret(t.Context(), "default", "key"); value != "" || !fault.Is(err, fault.Unavailable) {
		t.Errorf("file that others can read: got %q, %v, want Unavailable", value, err)
	}
}
