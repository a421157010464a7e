//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewContainersShareNetworkAndFolder(t *testing.T) {
	t.Parallel()
	const config = `{"ociVersion": "1.2", "linux": {"namespaces": [{"type": "pid"}, {"type": "network", "path": "/n"}, {"type": "mount"}], "cgroupsPath": "/c"}, "mounts": [{"destination": "/proc"}]}`
	const joined = `{"ociVersion": "1.2", "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}], "cgroupsPath": "/c"},
		"mounts": [{"destination": "/proc"}, {"destination": "/shared", "source": "/shared", "type": "bind", "options": ["rbind", "rw", "nosuid", "nodev"]}]}`
	for word, want := range map[string]string{"create": joined, "start": config} {
		bundle := t.TempDir()
		file := filepath.Join(bundle, "config.json")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := change([]string{"--root", "/r", word, "--bundle", bundle, "id"}, "/shared"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decode(t, want), decode(t, string(got))); diff != "" {
			t.Errorf("%s: configuration -want +got:\n%s", word, diff)
		}
	}
	if err := change([]string{"create", "--bundle", t.TempDir(), "id"}, ""); err == nil {
		t.Error("got no error without a configuration, want one")
	}
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
