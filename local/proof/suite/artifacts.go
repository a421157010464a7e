package suite

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func artifacts() []Test {
	return []Test{
		{Name: "artifact is created once, read and listed", Run: artifactIsCreatedOnce},
		{Name: "part of an artifact is read", Run: artifactIsReadInParts},
		{Name: "another tenant's artifact is unknown", Requires: []Capability{OtherTokens}, Run: foreignArtifact},
	}
}

// artifact stores a document that no other test stores. It returns the artifact and its
// content.
func (c *Case) artifact(more string) (a contract.ArtifactCreated, content string) {
	c.T.Helper()
	content = `{"batch":"` + c.Batch("document") + `","n":1}`
	a, header := send[contract.ArtifactCreated](c, http.MethodPost, "/v1/artifacts", `{"kind":"note","content":`+content+more+`}`, http.StatusCreated)
	if header.Get("Location") != "/v1/artifacts/"+a.ID {
		c.T.Errorf("got Location %q, want the path of the artifact", header.Get("Location"))
	}
	return a, content
}

func artifactIsCreatedOnce(c *Case) {
	tag := "suite:" + c.Batch("tag")
	a, content := c.artifact(`,"tags":["` + tag + `"]`)
	spaced := strings.ReplaceAll(content, ":1}", " : 1.0 }")
	if again, _ := send[contract.ArtifactCreated](c, http.MethodPost, "/v1/artifacts", `{"content":`+spaced+`,"kind":"other"}`, http.StatusOK); again.ID != a.ID || again.Kind != "note" {
		c.T.Errorf("got %+v for the same content, want %+v", again, a)
	}
	for _, id := range []string{a.ID, a.Digest} {
		if got := outside.Get[contract.Artifact](c.Client, "/v1/artifacts/"+id); string(got.Content) != content || got.Size != int64(len(content)) || len(got.Tags) != 1 {
			c.T.Errorf("got %+v with the content %s, want %s", got, got.Content, content)
		}
	}
	child, _ := send[contract.ArtifactCreated](c, http.MethodPost, "/v1/artifacts", `{"kind":"note","content":"child of `+tag+`","parent":"`+a.ID+`"}`, http.StatusCreated)
	for query, want := range map[string]string{"tag=" + tag: a.ID, "parent=" + a.ID + "&kind=note": child.ID} {
		list := outside.Get[contract.ArtifactList](c.Client, "/v1/artifacts?"+query)
		if len(list.Artifacts) != 1 || list.Artifacts[0].ID != want {
			c.T.Errorf("%s: got %+v, want %s", query, list.Artifacts, want)
		}
	}
	send[contract.Problem](c, http.MethodPost, "/v1/artifacts", `{"kind":"note","content":"`+strings.Repeat("x", 2<<20)+`"}`, http.StatusRequestEntityTooLarge)
	send[contract.Problem](c, http.MethodGet, "/v1/artifacts/"+strings.Repeat("0", 64), "", http.StatusNotFound)
}

func artifactIsReadInParts(c *Case) {
	content := "text of " + c.Batch("bytes")
	stored := c.Call(http.MethodPost, "/v1/artifacts?kind=note", content, "Content-Type", "text/plain")
	if stored.Status != http.StatusCreated {
		c.T.Fatalf("got %d %s, want 201", stored.Status, stored.Body)
	}
	path := "/v1/artifacts/" + outside.Decode[contract.ArtifactCreated](c.T, stored.Body).ID
	etag := c.Call(http.MethodGet, path, "").Header.Get("ETag")
	for _, row := range []struct {
		ranged, version string
		status          int
		body            string
	}{
		{"bytes=0-3", etag, http.StatusPartialContent, "text"},
		{"bytes=5-", "", http.StatusPartialContent, content[5:]},
		{"bytes=0-3", `"other"`, http.StatusOK, content},
		{"bytes=100000-", "", http.StatusRequestedRangeNotSatisfiable, ""},
	} {
		headers := []string{"Range", row.ranged}
		if row.version != "" {
			headers = append(headers, "If-Range", row.version)
		}
		got := c.Call(http.MethodGet, path, "", headers...)
		if got.Status != row.status || row.body != "" && string(got.Body) != row.body {
			c.T.Errorf("%v: got %d %s, want %d %s", headers, got.Status, got.Body, row.status, row.body)
		}
	}
}

func foreignArtifact(c *Case) {
	a, _ := c.artifact("")
	stranger := c.as(c.Target.Others.Stranger)
	if answer := stranger.Call(http.MethodGet, "/v1/artifacts/"+a.ID, ""); answer.Status != http.StatusNotFound {
		c.T.Errorf("got %d %s for another tenant's artifact, want 404", answer.Status, answer.Body)
	}
	for _, other := range outside.Get[contract.ArtifactList](stranger, "/v1/artifacts?limit=1000").Artifacts {
		if other.ID == a.ID {
			c.T.Errorf("got %s in another tenant's list", a.ID)
		}
	}
}
