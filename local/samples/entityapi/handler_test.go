package entityapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/samples/cid"
	"github.com/sortie-dev/sortie/local/samples/entityapi"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// few is a source of a few entities. The PI of n is "0000000000000000000000000n".
type few []entityapi.Entity

func pi(n string) string { return "0000000000000000000000000" + n }

func (f few) Len() int                      { return len(f) }
func (f few) Entity(i int) entityapi.Entity { return f[i] }
func (f few) Roots() []string               { return []string{f[0].PI} }
func (f few) Index(pi string) (int, bool) {
	for i, e := range f {
		if e.PI == pi {
			return i, true
		}
	}
	return 0, false
}

func body(s string) entityapi.Body { return entityapi.Body{Head: []byte(s)} }

func source() few {
	hello := entityapi.NewComponent("hello.txt", body("hello"))
	large := entityapi.NewComponent("large.bin", entityapi.Body{Head: []byte("<"), Filler: '.', FillerSize: 100_000, Tail: []byte(">")})
	busy := entityapi.NewComponent("busy.txt", body("busy"))
	busy.Fault.Busy = 1
	cut := entityapi.NewComponent("cut.txt", body(strings.Repeat("cut", 1000)))
	cut.Fault.Cut = 1
	wrong := entityapi.Component{Name: "wrong.txt", CID: cid.Raw([]byte("right")), Body: body("wrong")}
	lost := entityapi.Component{Name: "lost.txt", CID: cid.Raw([]byte("lost")), Lost: true}
	attached := entityapi.NewComponent("", body("attached"))
	return few{
		{PI: pi("1"), Versions: 2, Children: []string{pi("2"), pi("3")}, Components: []entityapi.Component{hello, large}, Note: "the first"},
		{PI: pi("2"), Versions: 1, Parent: pi("1"), Components: []entityapi.Component{busy, cut, lost, wrong}, Attachments: []entityapi.Component{attached}},
		{PI: pi("3"), Versions: 1, Parent: pi("1"), State: entityapi.Merged, MergedInto: pi("2")},
		{PI: pi("4"), Versions: 1, State: entityapi.Deleted},
		{PI: pi("5"), Versions: 1, State: entityapi.Gone},
		{PI: pi("6"), Versions: 1, Components: []entityapi.Component{hello}, Fault: entityapi.Fault{Busy: 1, Cut: 1}},
		{PI: pi("7"), Versions: 1, Components: []entityapi.Component{hello}, Fault: entityapi.Fault{Busy: entityapi.Forever}},
		{PI: pi("8"), Versions: 1, Components: []entityapi.Component{hello}, Fault: entityapi.Fault{Delay: time.Hour}},
	}
}

type server struct {
	t     *testing.T
	url   string
	clock *clock.Virtual
}

func setup(t *testing.T) *server {
	t.Helper()
	c := clock.NewVirtual(time.Unix(0, 0))
	s := httptest.NewServer(entityapi.Handler(source(), c))
	t.Cleanup(s.Close)
	return &server{t, s.URL, c}
}

// get returns the response and its body. It returns an error for an interrupted response.
func (s *server) get(path string) (*http.Response, []byte, error) {
	s.t.Helper()
	response, err := http.Get(s.url + path)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return response, b, err
}

func (s *server) json(path string) map[string]any {
	s.t.Helper()
	response, b, err := s.get(path)
	var v map[string]any
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(b, &v) != nil {
		s.t.Fatalf("%s: %v, %s", path, err, b)
	}
	return v
}

func TestEntityIsServedAsItsManifest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	got := s.json("/entities/" + pi("1"))
	first := s.json("/entities/" + pi("1") + "/versions/ver:1")
	want := map[string]any{
		"pi": pi("1"), "ver": 2.0, "ts": "2025-11-13T05:34:55.719Z", "note": "the first",
		"manifest_cid": got["manifest_cid"], "prev_cid": first["manifest_cid"],
		"components": map[string]any{
			"hello.txt": string(cid.Raw([]byte("hello"))),
			"large.bin": string(cid.Raw([]byte("<" + strings.Repeat(".", 100_000) + ">"))),
		},
		"children_pi": []any{pi("2"), pi("3")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first["prev_cid"] != nil || first["children_pi"] != nil || first["ver"] != 1.0 {
		t.Errorf("first version %v", first)
	}
	// The CID in the manifest must identify bytes that are served, which are a DAG-CBOR map.
	for _, m := range []map[string]any{got, first} {
		id := m["manifest_cid"].(string)
		_, node, err := s.get("/cat/" + id)
		if err != nil || string(cid.DagCBOR(node)) != id || !bytes.Contains(node, []byte("arke/manifest@v1")) {
			t.Errorf("manifest %s: %v, %q", id, err, node)
		}
	}
}

func TestManifestIsDeterministicDAGCBOR(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, node, err := s.get("/cat/" + s.json("/entities/" + pi("2"))["manifest_cid"].(string))
	if err != nil {
		t.Fatal(err)
	}
	// The map has seven fields, the shortest key first: a7 62"pi", then "ts", "ver", ...
	if !bytes.HasPrefix(node, []byte("\xa7\x62pi\x78\x1a"+pi("2")+"\x62ts\x78\x18")) {
		t.Errorf("begins %q", node[:40])
	}
	// A link is tag 42 with 37 bytes, of which the first is zero.
	if n := bytes.Count(node, []byte("\xd8\x2a\x58\x25\x00\x01\x55\x12\x20")); n != 4 {
		t.Errorf("%d links", n)
	}
}

func TestCatServesImmutableBytes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	id := string(cid.Raw([]byte("hello")))
	response, b, err := s.get("/cat/" + id)
	if err != nil || string(b) != "hello" {
		t.Fatalf("%q, %v", b, err)
	}
	for name, want := range map[string]string{
		"Cache-Control": "public, max-age=31536000, immutable", "X-Ipfs-Cid": id, "Content-Length": "5", "Content-Type": "application/octet-stream",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, b, err := s.get("/cat/" + string(cid.Raw([]byte("attached")))); err != nil || string(b) != "attached" {
		t.Errorf("attachment %q, %v", b, err)
	}
	if _, b, err := s.get("/cat/" + string(cid.Raw([]byte("right")))); err != nil || string(b) != "wrong" {
		t.Errorf("bytes that should not match: %q, %v", b, err)
	}
	head, err := http.Head(s.url + "/cat/" + id)
	if err != nil || head.StatusCode != http.StatusOK || head.ContentLength != 5 {
		t.Errorf("HEAD: %v, %v", head, err)
	}
	if err == nil {
		head.Body.Close()
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := setup(t)
	tests := map[string]struct {
		path   string
		status int
		code   string
	}{
		"an unknown PI":       {"/entities/" + pi("9"), 404, "NOT_FOUND"},
		"an entity gone":      {"/entities/" + pi("5"), 404, "NOT_FOUND"},
		"no PI":               {"/entities/" + pi("i"), 400, "VALIDATION_ERROR"},
		"an unknown tip":      {"/resolve/" + pi("9"), 404, "NOT_FOUND"},
		"no CID":              {"/cat/QmNothing", 400, "VALIDATION_ERROR"},
		"an unknown CID":      {"/cat/" + string(cid.Raw([]byte("unknown"))), 404, "NOT_FOUND"},
		"lost bytes":          {"/cat/" + string(cid.Raw([]byte("lost"))), 404, "NOT_FOUND"},
		"limit 0":             {"/entities?limit=0", 400, "VALIDATION_ERROR"},
		"limit 1001":          {"/entities?limit=1001", 400, "VALIDATION_ERROR"},
		"a limit in words":    {"/entities?limit=all", 400, "VALIDATION_ERROR"},
		"a strange cursor":    {"/entities?cursor=x", 400, "INVALID_CURSOR"},
		"a selector":          {"/entities/" + pi("1") + "/versions/first", 400, "VALIDATION_ERROR"},
		"a selector's number": {"/entities/" + pi("1") + "/versions/ver:one", 400, "VALIDATION_ERROR"},
		"version 3 of 2":      {"/entities/" + pi("1") + "/versions/ver:3", 404, "NOT_FOUND"},
		"a version's cursor":  {"/entities/" + pi("1") + "/versions?cursor=x", 400, "INVALID_CURSOR"},
		"no route":            {"/manifest/" + pi("1"), 404, "NOT_FOUND"},
		"down":                {"/entities/" + pi("7"), 503, "BACKEND_ERROR"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, b, err := s.get(tt.path)
			var answer struct {
				Error, Message string
				Details        map[string]string
			}
			if err != nil || json.Unmarshal(b, &answer) != nil {
				t.Fatalf("%v, %s", err, b)
			}
			if response.StatusCode != tt.status || answer.Error != tt.code || answer.Message == "" || answer.Details == nil {
				t.Errorf("%d %s", response.StatusCode, b)
			}
		})
	}
	response, err := http.Post(s.url+"/entities", "application/json", strings.NewReader("{}"))
	if err != nil || response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %v, %v", response, err)
	}
	if err == nil {
		response.Body.Close()
	}
}

func TestListContinuesAtTheCursor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var seen []string
	cursor := ""
	for range 10 {
		page := s.json("/entities?limit=3&cursor=" + cursor)
		if page["limit"] != 3.0 {
			t.Fatalf("limit %v", page["limit"])
		}
		for _, e := range page["entities"].([]any) {
			entity := e.(map[string]any)
			seen = append(seen, entity["pi"].(string))
			if resolved := s.json("/resolve/" + entity["pi"].(string)); resolved["tip"] != entity["tip"] {
				t.Errorf("tip %v, resolved %v", entity["tip"], resolved["tip"])
			}
		}
		next, more := page["next_cursor"].(string)
		if !more {
			break
		}
		cursor = next
	}
	if diff := cmp.Diff([]string{pi("1"), pi("2"), pi("3"), pi("4"), pi("6"), pi("7"), pi("8")}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsNewestFirst(t *testing.T) {
	t.Parallel()
	s := setup(t)
	one := s.json("/entities/" + pi("1") + "/versions?limit=1")
	two := s.json("/entities/" + pi("1") + "/versions?limit=1&cursor=" + one["next_cursor"].(string))
	item := func(page map[string]any) map[string]any { return page["items"].([]any)[0].(map[string]any) }
	if item(one)["ver"] != 2.0 || item(two)["ver"] != 1.0 || two["next_cursor"] != nil {
		t.Errorf("%v, %v", one, two)
	}
	byCID := s.json("/entities/" + pi("1") + "/versions/cid:" + item(two)["cid"].(string))
	if byCID["ver"] != 1.0 {
		t.Errorf("by CID: %v", byCID)
	}
}

func TestMergedAndDeletedHaveNoComponents(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if got := s.json("/entities/" + pi("3")); got["merged"] != true || got["merged_into"] != pi("2") || got["components"] != nil {
		t.Errorf("merged: %v", got)
	}
	if got := s.json("/entities/" + pi("4")); got["status"] != "deleted" || got["components"] != nil {
		t.Errorf("deleted: %v", got)
	}
}

func TestRootEntityNamesTheRoots(t *testing.T) {
	t.Parallel()
	s := setup(t)
	got := s.json("/arke")
	if diff := cmp.Diff(s.json("/entities/"+entityapi.RootPI), got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{pi("1")}, got["children_pi"]); diff != "" {
		t.Error(diff)
	}
	for _, id := range got["components"].(map[string]any) {
		if _, b, err := s.get("/cat/" + id.(string)); err != nil || string(cid.Raw(b)) != id {
			t.Errorf("component %v: %v", id, err)
		}
	}
	if s.json("/")["status"] != "ok" {
		t.Error("not healthy")
	}
}

func TestFaultsEnd(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, path := range []string{"/entities/" + pi("6"), "/cat/" + string(cid.Raw([]byte("busy")))} {
		response, _, err := s.get(path)
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %v, %v, want 503", path, response, err)
		}
	}
	for _, path := range []string{"/entities/" + pi("6"), "/cat/" + string(cid.Raw([]byte(strings.Repeat("cut", 1000))))} {
		if response, b, err := s.get(path); err == nil {
			t.Errorf("%s: got %v and %d bytes, want an interrupted body", path, response, len(b))
		}
		if response, _, err := s.get(path); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %v after the faults, want 200", path, err)
		}
	}
}

func TestDelayUsesTheClock(t *testing.T) {
	t.Parallel()
	s := setup(t)
	done := make(chan int)
	go func() {
		response, _, err := s.get("/entities/" + pi("8"))
		if err != nil {
			done <- 0
			return
		}
		done <- response.StatusCode
	}()
	for { // until the response waits for its delay
		if _, waits := s.clock.Next(); waits {
			break
		}
		runtime.Gosched()
	}
	select {
	case <-done:
		t.Error("got a response before the delay")
	default:
	}
	s.clock.Advance(time.Hour)
	if status := <-done; status != http.StatusOK {
		t.Errorf("got status %d", status)
	}
}
