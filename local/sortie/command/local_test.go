package command_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/command"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestValidateListsEveryMistake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.json"), filepath.Join(dir, "bad.json")
	for file, text := range map[string]string{
		good: `{"StartAt":"A","States":{"A":{"Type":"Pass","End":true}}}`,
		bad:  `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"C":{"Type":"Nonsense"}}}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := sortie(t, nil, "", "asl", "validate", good); got.code != 0 || got.stdout != "" {
		t.Errorf("valid definition: got %+v", got)
	}
	got := sortie(t, nil, "", "asl", "validate", good, bad)
	for _, want := range []string{bad + ": States.A.Next: ", "States.C"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got\n%s\nwant %q", got.stdout, want)
		}
	}
	if got.code != 1 {
		t.Errorf("got exit code %d, want 1", got.code)
	}
	endless := sortie(t, nil, `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"A"}}}`, "asl", "validate", "-")
	if endless.code != 1 || !strings.Contains(endless.stdout, "States: no terminal state") {
		t.Errorf("no terminal state: got %+v", endless)
	}
	loop := sortie(t, nil, `{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.a","IsPresent":true,"Next":"B"}],"Default":"C"},
		"B":{"Type":"Pass","Next":"B"},"C":{"Type":"Succeed"}}}`, "asl", "validate", "-")
	if loop.code != 0 || !strings.Contains(loop.stdout, "States.B: warning: no terminal state is reachable") {
		t.Errorf("a loop: got %+v, want exit code 0 and a warning", loop)
	}
	stdin := sortie(t, nil, `{}`, "asl", "validate", "-", "--json")
	var said struct {
		Valid    bool
		Mistakes []struct{ File, Place, What string }
	}
	if err := json.Unmarshal([]byte(stdin.stdout), &said); err != nil || stdin.code != 1 || said.Valid || len(said.Mistakes) == 0 {
		t.Errorf("standard input: got %+v, error %v", stdin, err)
	}
}

func TestRunWritesALinePerExecution(t *testing.T) {
	t.Parallel()
	got := sortie(t, nil, `{"name":"one","definition":{"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":86400,"End":true}}},"input":{"x":1}}`+"\n", "asl", "run")
	var said struct {
		Name, Status string
		Output       struct{ X int }
		States       []string
	}
	if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || got.code != 0 {
		t.Fatalf("got %+v, error %v", got, err)
	}
	if said.Name != "one" || said.Status != "SUCCEEDED" || said.Output.X != 1 || len(said.States) != 1 {
		t.Errorf("got %s", got.stdout)
	}
	if wrong := sortie(t, nil, "nonsense\n", "asl", "run"); wrong.code != 1 {
		t.Errorf("malformed line: got %+v, want exit code 1", wrong)
	}
}

// TestServeServesACollection calls the server while the command runs.
func TestServeServesACollection(t *testing.T) {
	t.Parallel()
	aids := t.TempDir()
	for name, text := range map[string]string{
		"aid.xml":   `<ead><eadheader><eadid>a</eadid></eadheader><archdesc level="collection"><did><unittitle>A</unittitle></did><dsc><c id="b"/><c/></dsc></archdesc></ead>`,
		"notes.txt": "", "mods.xml": "<mods/>",
	} {
		if err := os.WriteFile(filepath.Join(aids, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		args              string
		entities, skipped int
	}{
		"sample":       {"--sample", 72, 0},
		"generated":    {"--generate 12 --seed 7 --fanout 3 --fault missing=2", 12, 0},
		"finding aids": {"--ead " + aids, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			read, write := io.Pipe()
			ended := make(chan int, 1)
			go func() {
				ended <- command.Main(ctx, cli.Program{
					Args: append([]string{"collection", "serve", "--json"}, strings.Fields(row.args)...), Stdin: strings.NewReader(""),
					Stdout: write, Stderr: io.Discard, Env: func(string) (string, bool) { return "", false }, Clock: clock.System{},
				})
				_ = write.Close()
			}()
			var said struct {
				URL      string
				Entities int
				Roots    []struct {
					PI, Title string
					Entities  int
				}
				Skipped []struct{ File, Reason string }
			}
			if err := json.NewDecoder(read).Decode(&said); err != nil {
				t.Fatal(err)
			}
			if said.Entities != row.entities || len(said.Roots) != 1 || said.Roots[0].Title == "" || said.Skipped == nil || len(said.Skipped) != row.skipped {
				t.Errorf("got %+v", said)
			}
			resp, err := http.Get(said.URL + "/entities/" + said.Roots[0].PI)
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("root: got status %d, error %v", resp.StatusCode, err)
			}
			cancel()
			if code := <-ended; code != 0 {
				t.Errorf("got exit code %d, want 0", code)
			}
		})
	}
}

func TestBackupCopiesTheRecords(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(data, "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	target := filepath.Join(t.TempDir(), "copy.db")
	got := sortie(t, nil, "", "backup", target, "--data", data)
	if got.code != 0 || got.stdout != target+"\n" {
		t.Fatalf("got %+v", got)
	}
	copied, err := sqlite.Open(t.Context(), target)
	if err != nil {
		t.Fatalf("open the copy: %v", err)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	if again := sortie(t, nil, "", "backup", target, "--data", data); again.code != 2 {
		t.Errorf("existing file: got %+v, want exit code 2", again)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := sortie(t, nil, "", "version", "--json")
	var said struct{ Version, Go string }
	if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || said.Version != contract.APIVersion || said.Go == "" {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestRotateAddsAKeyToTheDataFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := sortie(t, nil, "", "keys", "rotate", "--data", dir); got.code != 2 || !strings.Contains(got.stderr, "keys.pem") {
		t.Errorf("folder without keys: got %+v", got)
	}
	signer, err := keyfile.Open(filepath.Join(dir, stack.KeysFile))
	if err != nil {
		t.Fatal(err)
	}
	before, err := signer.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := sortie(t, nil, "", "keys", "rotate", "--data", dir, "--json")
	var said keyfile.Rotation
	if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || got.code != 0 || len(said.Kept) != 1 || said.Kept[0] != before {
		t.Errorf("got %+v (%v), want the earlier key %s kept", got, err, before)
	}
	if now, err := signer.Current(context.Background()); err != nil || now != said.Made {
		t.Errorf("got the current key %s (%v), want %s", now, err, said.Made)
	}
	got = sortie(t, nil, "", "keys", "rotate", "--now", "--data", dir, "--json")
	said = keyfile.Rotation{}
	if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || got.code != 0 || len(said.Kept) != 0 || len(said.Dropped) != 2 {
		t.Errorf("got %+v (%v) with --now, want both older keys dropped", got, err)
	}
	if got := sortie(t, nil, "", "keys", "rotate", "--now", "--events", "--data", dir); got.code != 2 {
		t.Errorf("got %+v with --now and --events, want exit code 2", got)
	}
}

func TestRotateAddsAKeyOfEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := sortie(t, nil, "", "keys", "rotate", "--events", "--data", dir); got.code != 2 || !strings.Contains(got.stderr, "event-keys.pem") {
		t.Errorf("folder without keys: got %+v", got)
	}
	keys, err := keyfile.OpenEvents(filepath.Join(dir, stack.EventKeysFile))
	if err != nil {
		t.Fatal(err)
	}
	before, err := keys.Signing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := sortie(t, nil, "", "keys", "rotate", "--events", "--data", dir, "--json")
	var said keyfile.Rotation
	if err := json.Unmarshal([]byte(got.stdout), &said); err != nil || got.code != 0 || len(said.Dropped) != 0 {
		t.Errorf("got %+v (%v), want no key dropped", got, err)
	}
	now, err := keys.Signing(t.Context())
	if err != nil || now.ID() != said.Made || now.ID() == before.ID() || !slices.Contains(said.Kept, before.ID()) {
		t.Errorf("got the signing key %s (%v), want %s, and %s kept", now.ID(), err, said.Made, before.ID())
	}
	if all, err := keys.Published(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("got %d published keys (%v), want 2", len(all), err)
	}
}
