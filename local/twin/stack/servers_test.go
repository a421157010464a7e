package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

func TestServersFolder(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env  map[string]string
		want string
	}{
		"state":    {map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/sortie/servers"},
		"home":     {map[string]string{"HOME": "/h"}, "/h/.local/state/sortie/servers"},
		"relative": {map[string]string{"XDG_STATE_HOME": "s", "HOME": "h"}, ""},
		"none":     {nil, ""},
	} {
		if got := ServersFolder(func(name string) (string, bool) { v, ok := row.env[name]; return v, ok }); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

func TestServersAreRegistered(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "servers")
	register := func(url, data string, at time.Duration) func() error {
		s := &Stack{clock: clock.NewVirtual(time.Unix(0, 0).Add(at)), addresses: Addresses{URL: url, Data: data}}
		unregister, err := s.Register(folder)
		if err != nil {
			t.Fatal(err)
		}
		return unregister
	}
	check := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, s := range Servers(folder) {
			got = append(got, s.URL+s.Data)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	check()
	crashed := register("http://127.0.0.1:1", "/a", 0)
	register("http://127.0.0.1:2", "/b", 1)
	check("http://127.0.0.1:2/b", "http://127.0.0.1:1/a")
	end := register("http://127.0.0.1:1", "/c", 2) // the address of a server that crashed
	check("http://127.0.0.1:1/c", "http://127.0.0.1:2/b")
	again := register("http://127.0.0.1:3", "/a", 3)
	if err := crashed(); err != nil { // leaves the record of the next server of the folder
		t.Error(err)
	}
	check("http://127.0.0.1:3/a", "http://127.0.0.1:1/c", "http://127.0.0.1:2/b")
	for _, unregister := range []func() error{again, end, end} {
		if err := unregister(); err != nil {
			t.Error(err)
		}
	}
	check("http://127.0.0.1:2/b")
}

// TestPlantedServersAreIgnored plants records of servers that could mislead a client.
func TestPlantedServersAreIgnored(t *testing.T) {
	t.Parallel()
	valid := `{"url": "http://127.0.0.1:1", "data": "/a"}`
	for name, row := range map[string]struct {
		file, text string
		mode       os.FileMode
		want       int
	}{
		"its own":          {serverFile("", "/a"), valid, 0o600, 1},
		"for others":       {serverFile("", "/a"), valid, 0o620, 0},
		"another's name":   {serverFile("", "/b"), valid, 0o600, 0},
		"relative folder":  {serverFile("", "a"), `{"url": "http://127.0.0.1:1", "data": "a"}`, 0o600, 0},
		"another scheme":   {serverFile("", "/a"), `{"url": "file:///etc/passwd", "data": "/a"}`, 0o600, 0},
		"no host":          {serverFile("", "/a"), `{"url": "http:", "data": "/a"}`, 0o600, 0},
		"malformed":        {serverFile("", "/a"), `{"url"`, 0o600, 0},
		"larger than real": {serverFile("", "/a"), valid + fmt.Sprintf("%*s", serverLimit, ""), 0o600, 0},
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, row.file)
		if err := os.WriteFile(path, []byte(row.text), row.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, row.mode); err != nil {
			t.Fatal(err)
		}
		if got := Servers(folder); len(got) != row.want {
			t.Errorf("%s: got %v, want %d servers", name, got, row.want)
		}
	}
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(folder, "target"), filepath.Join(folder, serverFile("", "/a"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "target"), []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Servers(folder); len(got) != 0 {
		t.Errorf("a link: got %v, want no servers", got)
	}
}
