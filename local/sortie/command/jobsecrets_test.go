package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
)

// TestSecretsOfADataFolder writes, lists and deletes secrets.
func TestSecretsOfADataFolder(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	run := func(stdin string, args ...string) result {
		got := sortie(t, nil, stdin, append([]string{"secrets"}, append(args, "--data", data)...)...)
		if strings.Contains(got.stdout+got.stderr, "s3cret") {
			t.Errorf("%v: got the value printed: %+v", args, got)
		}
		return got
	}
	if got := run("", "list"); got.code != 0 || got.stdout != "" {
		t.Errorf("list without a folder: got %+v, want no names", got)
	}
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte("s3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, put := range []result{
		run("s3cret of\ntwo lines\n", "put", "report-key"), run("s3cret", "put", "report-key", "--tenant", "acme"), run("", "put", "alert", "--file", file),
	} {
		if put.code != 0 || put.stdout != "" {
			t.Errorf("put: got %+v, want success", put)
		}
	}
	folder := secretfile.Folder(filepath.Join(data, "secrets"))
	for name, want := range map[[2]string]string{
		{"default", "report-key"}: "s3cret of\ntwo lines", {"acme", "report-key"}: "s3cret", {"default", "alert"}: "s3cret",
	} {
		if got, err := folder.Secret(t.Context(), name[0], name[1]); err != nil || got != want {
			t.Errorf("%v: got %q, %v, want %q", name, got, err, want)
		}
	}
	if got := run("", "list"); got.stdout != "alert\nreport-key\n" {
		t.Errorf("list: got %+v, want both names", got)
	}
	if got := run("", "list", "--tenant", "acme", "--json"); !strings.Contains(got.stdout, `"report-key"`) || strings.Contains(got.stdout, "alert") {
		t.Errorf("list of a tenant: got %+v", got)
	}
	if got := run("", "delete", "alert"); got.code != 0 {
		t.Errorf("delete: got %+v", got)
	}
	if got := run("", "delete", "alert"); got.code != 4 || !strings.Contains(got.stderr, `unknown secret "alert"`) || !strings.Contains(got.stderr, "secrets list") {
		t.Errorf("second delete: got %+v, want exit code 4 and a hint", got)
	}
	if got := run("", "list"); got.stdout != "report-key\n" {
		t.Errorf("list: got %+v, want one name", got)
	}
}

func TestSecretsOfAStage(t *testing.T) {
	t.Parallel()
	written, reach := vault(t)
	got := sortieOn(t.Context(), reach, nil, "s3cret\n", "secrets", "put", "report-key", "--stage", "prod", "--tenant", "acme", "--json")
	if got.code != 0 || written["sortie/prod/jobs/acme/report-key"] != "s3cret" || strings.Contains(got.stdout+got.stderr, "s3cret") || !strings.Contains(got.stdout, `"tenant": "acme"`) {
		t.Errorf("got %+v and the values %v", got, written)
	}
}
