package stack_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const aToken = "token-of-the-test"

// get requests a URL with a Host header and a token; both may be empty.
func get(t *testing.T, url, host, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// TestOtherHostNamesAreRefused calls the loopback APIs like a page after DNS rebinding: with
// the page's host name.
func TestOtherHostNamesAreRefused(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	for _, url := range []string{g.Addresses.URL + "/healthz", g.Machines + "/v1/apps/arke-mods-export-worker/machines", g.Source + "/entities/x"} {
		if got := get(t, url, "", "x"); got == http.StatusForbidden {
			t.Errorf("GET %s by its own name: got 403", url)
		}
		for _, host := range []string{"evil.example", "127.0.0.1.evil.example:80", "192.168.1.2"} {
			if got := get(t, url, host, "x"); got != http.StatusForbidden {
				t.Errorf("GET %s as %s: got %d, want 403", url, host, got)
			}
		}
	}
}

func TestTokenIsRequiredWhereverOneIsSet(t *testing.T) {
	t.Parallel()
	g := start(t, served{Settings: map[string]string{"AUTH_TOKEN": aToken, "SORTIE_PUBLIC_URL": "https://sortie.example"}})
	own, err := stack.ReadToken(g.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"", "localhost", "127.0.0.1", "[::1]:80", "sortie.example"} {
		for token, want := range map[string]int{"": 401, "unknown": 401, aToken: 200, own: 200} {
			if got := get(t, g.Addresses.URL+"/v1/tasks", host, token); got != want {
				t.Errorf("Host %q with the token %q: got %d, want %d", host, token, got, want)
			}
		}
	}
}

func TestRecordMakesATokenRequired(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	if got := get(t, g.Addresses.URL+"/v1/tasks", "", "unknown"); got != http.StatusOK {
		t.Errorf("without tokens: got %d, want 200", got)
	}
	err := tokenfile.Update(filepath.Join(g.Data, stack.TokensFile), func([]access.Token) ([]access.Token, error) {
		return []access.Token{access.Full("ci", aToken, "acme", "web")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{aToken: 200, "unknown": 401} {
		if got := get(t, g.Addresses.URL+"/v1/tasks", "", token); got != want {
			t.Errorf("the token %q: got %d, want %d", token, got, want)
		}
	}
}

func TestServerThatOthersReachNeedsAToken(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		addr     string
		settings map[string]string
		refused  bool
	}{
		"every interface":               {"0.0.0.0:0", nil, true},
		"every interface with a token":  {"0.0.0.0:0", map[string]string{"AUTH_TOKEN": aToken}, false},
		"a public URL":                  {"127.0.0.1:0", map[string]string{"SORTIE_PUBLIC_URL": "http://10.0.0.1"}, true},
		"a public URL with a token":     {"127.0.0.1:0", map[string]string{"SORTIE_PUBLIC_URL": "http://10.0.0.1", "AUTH_TOKEN": aToken}, false},
		"a public URL on loopback":      {"127.0.0.1:0", map[string]string{"SORTIE_PUBLIC_URL": "http://localhost:80"}, false},
		"a public URL that looks local": {"127.0.0.1:0", map[string]string{"SORTIE_PUBLIC_URL": "http://localhost.example"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, err := stack.SettingsFrom(setting.Map(row.settings), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := stack.CheckAccess(row.addr, t.TempDir(), settings); (err != nil) != row.refused || err != nil && !strings.Contains(err.Error(), "AUTH_TOKEN") {
				t.Errorf("before the start: got %v, want an error: %v", err, row.refused)
			}
			config, err := configure(served{Data: t.TempDir(), Settings: row.settings})
			if err != nil {
				t.Fatal(err)
			}
			config.Addr = row.addr
			s, err := stack.Start(t.Context(), config)
			if (err != nil) != row.refused {
				t.Errorf("start: got %v, want an error: %v", err, row.refused)
			}
			if err == nil && s.Stop(t.Context()) != nil {
				t.Error("stop: got an error")
			}
		})
	}
	if _, err := stack.SettingsFrom(setting.Map(map[string]string{"AUTH_TOKEN": aToken + ",short"}), nil); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("a short token: got %v, want an error", err)
	}
}

// plantRecords creates the database of a folder, without a run.
func plantRecords(t *testing.T, folder string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(folder, stack.RecordsFile))
	if err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.NewStore(t.Context(), db, clock.System{})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPlantedFolderIsRefused opens a folder with a record that would start a program, with the
// file modes of git and of archives.
func TestPlantedFolderIsRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mode    os.FileMode
		change  func(folder string) error
		refused string
	}{
		"cloned":        {0o755, nil, "chmod 0700"},
		"shared":        {0o770, nil, "chmod 0700"},
		"with a link":   {0o700, func(folder string) error { return os.Symlink("/etc", filepath.Join(folder, "s3")) }, "neither a file nor a folder"},
		"open secrets":  {0o700, func(folder string) error { return os.Chmod(filepath.Join(folder, "stack.json"), 0o644) }, "chmod 0600"},
		"open token":    {0o700, func(folder string) error { return os.WriteFile(filepath.Join(folder, "token"), []byte(aToken), 0o644) }, "chmod 0600"},
		"with its mode": {0o700, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, mark := filepath.Join(t.TempDir(), ".sortie"), filepath.Join(t.TempDir(), "mark")
			machine := filepath.Join(folder, "machines", "machines", "0123456789abcd")
			if err := os.MkdirAll(machine, 0o700); err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string]string{
				filepath.Join(folder, "stack.json"): `{"secrets":{"machines-token":"known"},"tenant":"default"}`,
				filepath.Join(machine, "machine.json"): `{"id":"0123456789abcd","app":"arke-mods-export-worker","name":"m","region":"ord","state":"created","starts":1,
					"config":{"image":"x","restart":{"policy":"always"}},"argv":["/usr/bin/touch","` + mark + `"],"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}`,
			} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			plantRecords(t, folder)
			if row.change != nil {
				if err := row.change(folder); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(folder, row.mode); err != nil {
				t.Fatal(err)
			}
			if row.refused != "" {
				config, err := configure(served{Data: folder})
				if err != nil {
					t.Fatal(err)
				}
				if got := refusal(t, config); !strings.Contains(got, row.refused) {
					t.Errorf("got %q, want %q", got, row.refused)
				}
			} else {
				g := start(t, served{Data: folder, Play: "success"})
				if status := g.End(g.post(contract.ExportOptions{})); status.Status != contract.StatusSuccess {
					t.Errorf("a run in the folder: got %+v, want a success", status)
				}
				if got := get(t, g.Machines+"/v1/apps/arke-mods-export-worker/machines", "", "known"); got != http.StatusUnauthorized {
					t.Errorf("machines API with the folder's token: got %d, want 401", got)
				}
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the planted program has run")
			}
		})
	}
}

// TestWorkerWithoutBucketKeys exports the sample with presigned URLs only.
func TestWorkerWithoutBucketKeys(t *testing.T) {
	t.Parallel()
	g := start(t, served{Settings: map[string]string{"SORTIE_BUCKET_CREDENTIALS": "envelope"}})
	task := g.post(contract.ExportOptions{})
	if status := g.End(task); status.Status != contract.StatusSuccess {
		t.Fatalf("got %+v, want a success", status)
	}
	if output := g.Call(http.MethodGet, "/download/"+task, ""); output.Status != http.StatusOK || !strings.Contains(string(output.Body), "<mods") {
		t.Errorf("got %d and %d bytes, want the output", output.Status, len(output.Body))
	}
}
