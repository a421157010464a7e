package console_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// artifact stores an artifact of the kind note and returns its id.
func (h *home) artifact(t *testing.T, mediaType, content, tags string) string {
	t.Helper()
	path, body := "/v1/artifacts?kind=note&metadata="+url.QueryEscape(`{"a":"<b>"}`), content
	if tags != "" {
		path += "&tags=" + url.QueryEscape(tags)
	}
	if mediaType == "application/json" {
		path, body = "/v1/artifacts", `{"kind":"note","content":`+content+`}`
	}
	answer := h.Call(t, http.MethodPost, path, body, append(bearer, "Content-Type", mediaType)...)
	var created contract.ArtifactCreated
	if err := json.Unmarshal([]byte(answer.Body), &created); err != nil || answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want the artifact", answer.Status, answer.Body)
	}
	return created.ID
}

func TestArtifactsArePreviewed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/artifacts", "There are no artifacts yet", "sortie artifacts put note note.txt", "sortie artifacts list")
	for kind, each := range map[string]struct{ content, want string }{
		"application/json":         {`{"b":["<script>"]}`, "{\n  &#34;b&#34;: [\n    &#34;&lt;script&gt;&#34;\n  ]\n}</pre>"},
		"text/plain":               {"all of it\u202e", "all of it⟨U+202E⟩</pre>"},
		"text/csv":                 {"region,orders\n<b>,3", `<td><bdi>&lt;b&gt;</bdi></td><td><bdi>3</bdi></td>`},
		"application/xml":          {"<a onload='alert(1)'/>", "&lt;a onload="},
		"text/html":                {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;</pre>"},
		"application/octet-stream": {"\x00\x01", "There is no preview of this type."},
		"text/markdown":            {strings.Repeat("x", 40_000), "x…</pre>"},
	} {
		id := h.artifact(t, kind, each.content, "")
		text := b.page("/console/artifacts/"+id, each.want, kind, id, "as JSON", "sortie artifacts ", `href="../json/v1/artifacts/`+id+`"`)
		for _, never := range []string{"<script>alert", "<a onload", "<b>", "\u202e"} {
			if strings.Contains(text, never) {
				t.Errorf("%s: got %q in the page", kind, never)
			}
		}
		if answer := b.get("/console/artifacts/" + id + "/picture"); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d for what is no picture, want 404", kind, answer.Status)
		}
		if answer := b.get("/console/search?q=sha256:" + id); answer.Header.Get("Location") != "/console/artifacts/sha256:"+id {
			t.Errorf("got %d to %q, want the artifact", answer.Status, answer.Header.Get("Location"))
		}
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 9, 9))); err != nil {
		t.Fatal(err)
	}
	id := h.artifact(t, "image/png", picture.String(), "")
	b.page("/console/artifacts/"+id, `<img src="../artifacts/`+id+`/picture"`)
	answer := b.get("/console/artifacts/" + id + "/picture")
	if answer.Body != picture.String() || answer.Header.Get("Content-Type") != "image/png" || !strings.HasPrefix(answer.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("got %d %v, want the picture in a sandbox", answer.Status, answer.Header)
	}
}

func TestArtifactsOfARunAreBesideItsOutput(t *testing.T) {
	t.Parallel()
	h := setup(t)
	run := h.program(t, `{"image":"a"}`)
	id := h.artifact(t, "text/plain", "notes", "draft task:"+run)
	h.artifact(t, "text/plain", "others", "draft")
	b := h.signedIn(t, ownerToken)
	if text := b.page("/console/runs/"+run, `href="../artifacts/`+id+`"`, "draft"); strings.Count(text, "../artifacts/") != 1 {
		t.Error("got artifacts of others on the page of a run")
	}
	b.page("/console/artifacts/"+id, `href="../runs/`+run+`"`, "list")
	if text := b.page("/console/artifacts?tag=draft", id, "sortie artifacts list --tag draft"); strings.Count(text, `"./artifacts/`) != 2 {
		t.Error("got other artifacts than the two with the tag")
	}
	b.page("/console/artifacts?kind=other", "No artifact of this part of the list matches")
	for _, token := range []string{otherToken} {
		other := h.signedIn(t, token)
		for _, path := range []string{"/console/artifacts/" + id, "/console/artifacts/" + id + "/picture", "/console/json/v1/artifacts/" + id} {
			if answer := other.get(path); answer.Status != http.StatusNotFound {
				t.Errorf("%s of another tenant: got %d, want 404", path, answer.Status)
			}
		}
		if text := other.page("/console/artifacts"); strings.Contains(text, id) {
			t.Error("got an artifact of another tenant")
		}
	}
	for _, bad := range append([]string{"kind=A", "tag=a%20b", "parent=x", "cursor=!", "none=1"}, "kind="+url.QueryEscape(hostile[0])) {
		if answer := b.get("/console/artifacts?" + bad); answer.Status != http.StatusBadRequest || strings.Contains(answer.Body, "<script>alert") {
			t.Errorf("%s: got %d, want 400", bad, answer.Status)
		}
	}
	for _, bad := range []string{"none", "%2e%2e%2fruns", "%3Cscript%3E", strings.Repeat("0", 64)} {
		if answer := b.get("/console/artifacts/" + bad); answer.Status != http.StatusBadRequest && answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want a refusal", bad, answer.Status)
		}
	}
}

func TestResultsAreThoseOfEachJob(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "rare", `{"image":"a"}`)
	h.job(t, "busy", `{"image":"a"}`)
	h.jobRun(t, "rare")
	for range 40 {
		h.jobRun(t, "busy")
	}
	list, _ := apitest.Decoded[contract.JobList](t, h.Stage, http.MethodGet, "/v1/jobs?results=30", "", 200, bearer...)
	if len(list.Jobs) != 2 || len(list.Jobs[0].Results) != 30 || len(list.Jobs[1].Results) != 1 {
		t.Fatalf("got %+v, want 30 results and one", list.Jobs)
	}
	text := h.signedIn(t, ownerToken).page("/console/jobs", "last 30 runs of each job")
	for _, job := range strings.Split(text, `data-job="`)[1:] {
		if n, want := strings.Count(job, "h6V24z"), map[byte]int{'b': 30, 'r': 1}[job[0]]; n != want {
			t.Errorf("%.4s: got %d results, want %d", job, n, want)
		}
	}
}
