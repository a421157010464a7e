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
		`["a", "b"`:                    "--items: the file begins with [ and is no JSON array, want one, or lines",
		"\xff":                         "--items: the file is no text in UTF-8",
		strings.Repeat("a", 5000):      "--items: item 0 has 5000 bytes, want at most 4096",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		sent = ""
		got := sortie(t, map[string]string{"SORTIE_URL": server.URL}, "", "jobs", "run", "each", "--items", name)
		switch fails := strings.HasPrefix(want, "--items"); {
		case fails && (got.code != 2 || !strings.Contains(got.stderr, want) || sent != ""):
			t.Errorf("%.20q: got %+v, and %q sent, want %s", content, got, sent, want)
		case !fails && (got.code != 0 || sent != want):
			t.Errorf("%.20q: got %+v, and %q sent, want %s", content, got, sent, want)
		}
	}
}
