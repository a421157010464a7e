package registry_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const path = "/v1/artifacts"

func setup(t *testing.T) *apitest.Stage {
	t.Helper()
	return apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return registry.Routes(s.Artifacts) })
}

func TestArtifactIsCreatedOnceAndRead(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const content = `{"n": 1.0, "a": ["ž", 1e21, null]}`
	a, header := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path, `{"kind": "note", "tags": ["x"], "metadata": {"m": 1}, "content": `+content+`}`, 201)
	if a.Digest != "sha256:"+a.ID || a.Kind != "note" || a.CreatedMS != apitest.Began.UnixMilli() || header.Get("Location") != path+"/"+a.ID {
		t.Errorf("got %+v with headers %v, want the artifact and its path", a, header)
	}
	again, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path, `{"kind": "other", "content": {"a": ["ž",1e21,null], "n": 1}}`, 200)
	if diff := cmp.Diff(a, again); diff != "" {
		t.Errorf("the same content: want -, got +\n%s", diff)
	}
	for _, id := range []string{a.ID, a.Digest} {
		answer := stage.Call(t, "GET", path+"/"+id, "")
		want := fmt.Sprintf(`{"id":"%[1]s","kind":"note","digest":"sha256:%[1]s","created_ms":%d,"tags":["x"],"media_type":"application/json","size":29,"parent":null,"metadata":{"m":1},"content":{"a":["ž",1e+21,null],"n":1}}`, a.ID, a.CreatedMS)
		if answer.Status != 200 || answer.Body != want {
			t.Errorf("got %d %s, want %s", answer.Status, answer.Body, want)
		}
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", path+"/"+strings.Repeat("0", 64), "", 404)
	apitest.Decoded[contract.Problem](t, stage, "GET", path+"/unknown", "", 404)
}

func TestMalformedArtifactNamesTheField(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for _, row := range []struct {
		body, field string
		status      int
	}{
		{`{"content": 1}`, "kind", 400},
		{`{"kind": "note"}`, "content", 400},
		{`{"kind": "A", "content": 1}`, "kind", 400},
		{`{"kind": "note", "content": 1, "tags": ["a", "a"]}`, "tags", 400},
		{`{"kind": "note", "content": 1, "parent": "x"}`, "parent", 400},
		{`{"kind": "note", "content": 1, "parent": ""}`, "parent", 400},
		{`{"kind": "note", "content": 1, "parent": "` + strings.Repeat("0", 64) + `"}`, "parent", 422},
		{`{"kind": "note", "content": 1, "metadata": []}`, "metadata", 400},
		{`{"kind": "note", "content": {"a": 1, "a": 2}}`, "content.a", 400},
		{`{"kind": "note", "content": "` + strings.Repeat("x", artifact.MaxSize) + `"}`, "", 413},
	} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path, row.body, row.status); p.Field != row.field {
			t.Errorf("%.80s: got field %q (%s), want %q", row.body, p.Field, p.Detail, row.field)
		}
	}
	for _, query := range []string{"kind=A", "tag=a+b", "parent=x", "cursor=x", "limit=0"} {
		apitest.Decoded[contract.Problem](t, stage, "GET", path+"?"+query, "", 400)
	}
}

func TestArtifactsAreListedByTagKindAndParent(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	create := func(body string) string {
		a, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path, body, 201)
		return a.ID
	}
	first := create(`{"kind": "note", "content": 1, "tags": ["a", "b"]}`)
	child := create(`{"kind": "trace", "content": 2, "tags": ["b"], "parent": "sha256:` + first + `"}`)
	third := create(`{"kind": "note", "content": 3, "tags": ["c"], "parent": "` + first + `"}`)
	for query, want := range map[string][]string{
		"": {first, child, third}, "?kind=note": {first, third}, "?tag=b": {first, child}, "?parent=" + first: {child, third},
		"?parent=sha256:" + first + "&kind=trace": {child}, "?tag=b&kind=trace": {child}, "?tag=none": nil,
	} {
		got := map[string]bool{}
		for cursor := ""; ; {
			at := "?limit=1"
			if query != "" {
				at = query + "&limit=1"
			}
			page, _ := apitest.Decoded[contract.ArtifactList](t, stage, "GET", path+at+"&cursor="+cursor, "", 200)
			for _, a := range page.Artifacts {
				got[a.ID] = true
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		listed := map[string]bool{}
		for _, id := range want {
			listed[id] = true
		}
		if diff := cmp.Diff(listed, got); diff != "" {
			t.Errorf("%s: want -, got +\n%s", query, diff)
		}
	}
}

func TestMalformedFilterIsRefused(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for query, field := range map[string]string{"kind=": "kind", "kind=A": "kind", "tag=": "tag", "tag=a%20b": "tag", "parent=": "parent", "parent=1": "parent"} {
		answer := stage.Call(t, "GET", path+"?"+query, "")
		if answer.Status != 400 || !strings.Contains(answer.Body, `"`+field+`"`) {
			t.Errorf("%s: got %d %s, want 400 for %s", query, answer.Status, answer.Body, field)
		}
	}
}

func TestConcurrentCreationsAreOneArtifact(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	created, keys := 0, map[string]bool{}
	for range 8 {
		wait.Go(func() {
			a, existing, err := stage.System.Artifacts.Create(t.Context(), apitest.Tenant, "test", artifact.Draft{Kind: "note", Content: []byte("[]")})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if !existing {
				created++
			}
			keys[a.Key] = true
		})
	}
	wait.Wait()
	if created != 1 || len(keys) != 1 {
		t.Errorf("got %d creations and the keys %v, want one", created, keys)
	}
}
