package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestItemsOfAFile sends the items of a JSON array, and of lines. An empty list replaces the items
// of the job, too.
func TestItemsOfAFile(t *testing.T) {
	t.Parallel()
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"taskId":"job_1","runId":"job_1"}`)
	}))
	t.Cleanup(server.Close)
	name := filepath.Join(t.TempDir(), "items")
	for content, want := range map[string]string{
		"[\"a b\",\n 2, {\"c\": 3}]\n": `{"items":["a b","2","{\"c\":3}"]}`,
		"a b\r\n\n[2]\n":               `{"items":["a b","[2]"]}`,
		" []":                          `{"items":[]}`,
		"":                             `{"items":[]}`,
		`["a", "b"`:                    "items: the file begins with [ and is no JSON array, want one, or lines",
		"\xff":                         "items: the file is no text in UTF-8",
		strings.Repeat("a", 5000):      "items:1: item 0 has 5000 bytes, want at most 4096",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		sent = ""
		got := sortie(t, map[string]string{"SORTIE_URL": server.URL}, "", "jobs", "run", "each", "--items", name)
		switch fails := strings.HasPrefix(want, "items:"); {
		case fails && (got.code != 2 || !strings.Contains(got.stderr, want) || sent != ""):
			t.Errorf("%.20q: got %+v, and %q sent, want %s", content, got, sent, want)
		case !fails && (got.code != 0 || sent != want):
			t.Errorf("%.20q: got %+v, and %q sent, want %s", content, got, sent, want)
		}
	}
}

// TestApplyReadsItemsOfAFile stores the lines of a file as the items of a job. Problems name the
// file and the line.
func TestApplyReadsItemsOfAFile(t *testing.T) {
	t.Parallel()
	const head = "id: each\nimage: x\ncommand: [\"{{item}}\"]\nitems: "
	for _, row := range []struct{ name, items, file, want string }{
		{"lines", "{file: pages.txt}", "a b\n\n[2]\r\n", ""},
		{"array", "{file: ./pages.txt}", `["a b", "[2]"]`, ""},
		{"missing", "{file: other.txt}", "a", "each.yaml:4: items.file: "},
		{"long line", "{file: pages.txt}", "a\n\n" + strings.Repeat("b", 4097) + "\n", "each.yaml:4: items.file: FOLDER/pages.txt:3: item 1 has 4097 bytes, want at most 4096"},
		{"NUL", "{file: pages.txt}", "a\n\x00\n", "FOLDER/pages.txt: the file is no text"},
		{"begins with [", "{file: pages.txt}", "[info] a\n", "FOLDER/pages.txt: the file begins with [ and is no JSON array"},
		{"large", "{file: pages.txt}", strings.Repeat(strings.Repeat("b", 99)+"\n", 700), "bytes in a job, want at most 65536; start runs with sortie jobs run JOB --items FILE"},
		{"other folder", "{file: ../pages.txt}", "a", `"../pages.txt" is not in the folder of the job file`},
		{"from too", "{file: pages.txt, from: {job: lists}}\nafter: [lists]", "a", "items.file: no meaning with from"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			folder := folderOf(t, map[string]string{"each.yaml": head + row.items + "\n", "pages.txt": row.file})
			env := jobServer(t)
			got := sortie(t, env, "", "jobs", "apply", "-f", folder)
			if want := strings.ReplaceAll(row.want, "FOLDER", folder); want != "" {
				if got.code != 2 || !strings.Contains(got.stderr, want) {
					t.Errorf("got %+v, want %s", got, want)
				}
				return
			}
			if shown := sortie(t, env, "", "jobs", "show", "each", "--json"); got.code != 0 || !strings.Contains(strings.Join(strings.Fields(shown.stdout), ""), `"items":["ab","[2]"]`) {
				t.Errorf("got %+v and %+v, want the items of the file", got, shown)
			}
		})
	}
}
