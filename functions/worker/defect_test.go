package worker

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDefects has a row for each line of the table in the package comment. Entity 0 is the root
// with the children 1 and 2, to which the row adds a defect.
func TestDefects(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name                         string
		fail                         func(a *archive)
		exported, incomplete, failed int
		has, hasNot                  []string
	}{
		{name: "none", exported: 3},
		{name: "cycle", exported: 3, fail: func(a *archive) {
			a.add(2, pinax("two"), 0, 1, 2)
		}},
		{name: "repeated child", exported: 3, fail: func(a *archive) {
			a.add(0, pinax("root"), 1, 2, 1, 2)
		}},
		{name: "child that names another parent", exported: 3, fail: func(a *archive) {
			a.add(1, pinax("one"))["parent_pi"] = testPI(77)
		}, has: []string{`<relatedItem type="host">`, testPI(77)}},
		{name: "child that only names its parent", exported: 3, fail: func(a *archive) {
			a.add(5, pinax("unlisted"))["parent_pi"] = testPI(0)
		}, hasNot: []string{"unlisted"}},
		{name: "malformed PI of a child", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.entities[testPI(0)]["children_pi"] = []any{testPI(1), "not a PI", 7, nil, testPI(2)}
		}, has: []string{"2 links to other entities are no PIs"}},
		{name: "404", exported: 2, failed: 1, fail: func(a *archive) {
			delete(a.entities, testPI(1))
		}},
		{name: "merged", exported: 2, failed: 1, fail: func(a *archive) {
			a.entities[testPI(1)] = map[string]any{"id": testPI(1), "type": "x", "merged": true, "merged_into": testPI(9)}
			a.add(9, pinax("nine"))
		}, hasNot: []string{"nine"}},
		{name: "deleted", exported: 2, failed: 1, fail: func(a *archive) {
			a.entities[testPI(1)] = map[string]any{"id": testPI(1), "type": "x", "status": "deleted"}
		}},
		{name: "about another entity", exported: 2, failed: 1, fail: func(a *archive) {
			a.entities[testPI(1)]["pi"] = testPI(2)
		}},
		{name: "no JSON", exported: 2, failed: 1, fail: func(a *archive) {
			a.answers["/entities/"+testPI(1)] = text(200, "<html>maintenance</html>")
		}},
		{name: "503 three times", exported: 3, fail: func(a *archive) {
			a.answers["/entities/"+testPI(1)] = after(3, a, text(503, "{}"))
			a.answers["/cat/"+a.cid(2, "pinax.json")] = after(3, a, text(429, "{}"))
		}},
		{name: "permanent 503", exported: 2, failed: 1, fail: func(a *archive) {
			a.answers["/entities/"+testPI(1)] = text(503, "{}")
		}},
		{name: "permanent 503 of a component", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.answers["/cat/"+a.cid(1, "pinax.json")] = text(503, "{}")
		}, has: []string{"[Incomplete Record: " + testPI(1) + "]", "pinax.json: 503 Service Unavailable"}},
		{name: "connection broken twice", exported: 3, fail: func(a *archive) {
			a.answers["/entities/"+testPI(1)] = after(2, a, broken)
			a.answers["/cat/"+a.cid(2, "pinax.json")] = after(2, a, broken)
		}},
		{name: "truncated twice", exported: 3, fail: func(a *archive) {
			a.answers["/entities/"+testPI(1)] = after(2, a, truncated)
			a.answers["/cat/"+a.cid(2, "pinax.json")] = after(2, a, truncated)
		}},
		{name: "truncated without a length", exported: 3, fail: func(a *archive) {
			a.answers["/entities/"+testPI(1)] = after(2, a, text(200, `{"pi":"`+testPI(1)))
			a.answers["/cat/"+a.cid(2, "pinax.json")] = after(2, a, text(200, `{"id":"x`))
		}},
		{name: "always truncated", exported: 2, failed: 1, fail: func(a *archive) {
			a.answers["/entities/"+testPI(1)] = truncated
		}},
		{name: "no pinax", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.add(1, map[string]any{"description.md": []byte("what is known")})
		}, has: []string{"[Incomplete Record: " + testPI(1) + "]", "pinax.json: missing", "what is known"}},
		{name: "broken pinax", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.add(1, map[string]any{"pinax.json": []byte(`{"title":`)})
		}, has: []string{"[Incomplete Record: " + testPI(1) + "]"}},
		{name: "pinax is a list", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.add(1, map[string]any{"pinax.json": []byte(`["title"]`)})
		}},
		{name: "pinax without a title", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.add(1, map[string]any{"pinax.json": map[string]any{"creator": "Jane Known"}})
		}, has: []string{"Jane Known", "it has no title"}},
		{name: "huge pinax", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.add(1, map[string]any{"pinax.json": map[string]any{"title": strings.Repeat("x", 5<<20)}})
		}, has: []string{"pinax.json: it is too large"}, hasNot: []string{"xxxxxxxxxx"}},
		{name: "pinax 404", exported: 3, incomplete: 1, fail: func(a *archive) {
			delete(a.blocks, a.cid(1, "pinax.json"))
		}, has: []string{"pinax.json: 404 Not Found"}},
		{name: "wrong CID", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.blocks[a.cid(1, "pinax.json")] = []byte(`{"title":"forged"}`)
		}, has: []string{"its bytes do not match its CID"}, hasNot: []string{"forged"}},
		{name: "CID that cannot be checked", exported: 3, fail: func(a *archive) {
			a.blocks["QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"] = []byte(`{"title":"taken as it comes"}`)
			a.entities[testPI(1)]["components"] = map[string]any{
				"pinax.json": map[string]string{"/": "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"},
			}
		}, has: []string{"taken as it comes"}},
		{name: "malformed CID", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.entities[testPI(1)]["components"] = map[string]any{"pinax.json": "../../secret?x"}
		}, has: []string{"malformed CID"}},
		{name: "broken reference", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.add(1, with(pinax("one"), "page.ref.json", []byte(`{"ocr":"no url"}`)))
		}, has: []string{`displayLabel="page.ref.json"`, "page.ref.json: it has no url"}},
		{name: "broken graph", exported: 3, incomplete: 1, fail: func(a *archive) {
			a.add(1, with(pinax("one"), "cheimarros.json", []byte(`{`)))
		}, has: []string{"<title>one</title>", "cheimarros.json: it is not one JSON object"}},
		{name: "empty OCR", exported: 3, fail: func(a *archive) {
			a.add(1, with(pinax("one"), "page.ref.json", map[string]any{"url": "https://cdn/x", "ocr": " \n"}))
		}, hasNot: []string{`type="ocr"`}},
		{name: "control bytes in OCR", exported: 3, fail: func(a *archive) {
			a.add(1, with(pinax("one"), "page.ref.json", []byte(`{"url":"https://cdn/x","ocr":"a\u0000b\u000cc`+"\x01\xff"+`\ud800 d\r\ne"}`)))
		}, has: []string{"a\uFFFDb\uFFFDc\uFFFD\uFFFD\uFFFD d&#xD;\ne"}},
		{name: "no UTF-8 in the narrative", exported: 3, fail: func(a *archive) {
			a.add(1, with(pinax("one"), "description.md", []byte("caf\xe9 & <b>")))
		}, has: []string{"caf\uFFFD &amp; &lt;b&gt;"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "mods", recursive())
			b.archive.add(0, pinax("root"), 1, 2)
			b.archive.add(1, pinax("one"))
			b.archive.add(2, pinax("two"))
			if row.fail != nil {
				row.fail(b.archive)
			}
			r, doc := b.mustRun()
			wantCounts(t, r, row.exported, row.incomplete, row.failed)
			wantValid(t, doc)
			if n := strings.Count(doc, "<mods "); n != row.exported {
				t.Errorf("got %d records in the document, want %d", n, row.exported)
			}
			for _, want := range row.has {
				if !strings.Contains(doc, want) {
					t.Errorf("got a document without %q:\n%s", want, doc)
				}
			}
			for _, unwanted := range row.hasNot {
				if strings.Contains(doc, unwanted) {
					t.Errorf("got %q in the document", unwanted)
				}
			}
		})
	}
}

func TestSlowAnswersAreRetried(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.config.Limits.AttemptTimeout = attemptLimit
	b.archive.add(0, pinax("patience"))
	waiting := make(chan struct{})
	b.archive.answers["/entities/"+testPI(0)] = after(2, b.archive, func(w http.ResponseWriter, r *http.Request, _ int) {
		waiting <- struct{}{}
		<-r.Context().Done() // until the worker gives up
	})
	b.clock.slow = func(time.Duration) <-chan time.Time {
		fired := make(chan time.Time)
		go func() {
			select {
			case <-waiting:
				fired <- time.Time{}
			case <-t.Context().Done():
			}
		}()
		return fired
	}
	r, _ := b.mustRun()
	wantCounts(t, r, 1, 0, 0)
	if n := b.archive.count("/entities/" + testPI(0)); n != 3 {
		t.Errorf("got %d requests, want 3", n)
	}
}

func TestRootThatCannotBeReadFailsTheExport(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, why string
		answer    func(http.ResponseWriter, *http.Request, int)
	}{
		{"404", "404 Not Found", text(404, "{}")},
		{"503", "503 Service Unavailable", text(503, "{}")},
		{"403", "403 Forbidden", text(403, "{}")},
		{"no connection", "the source did not answer", broken},
		{"truncated", "the answer was cut short", truncated},
		{"not a manifest", "the answer is not a manifest", text(200, "[]")},
		{"deleted", "deleted", text(200, `{"id":"`+testPI(0)+`","status":"deleted"}`)},
		{"merged", "merged into " + testPI(5), text(200, `{"id":"`+testPI(0)+`","merged":true,"merged_into":"`+testPI(5)+`"}`)},
	} {
		for _, collection := range []bool{false, true} {
			t.Run(fmt.Sprint(row.name, collection), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "mods", Options{Recursive: collection, MaxDepth: 5, ParallelBatchSize: 3})
				b.archive.answers["/entities/"+testPI(0)] = row.answer
				r, doc, err := b.run()
				want := "Failed to fetch manifest for PI " + testPI(0) + ": " + row.why
				if err == nil || r.Status != "error" || r.Error != want || doc != "" || r.Metrics != nil {
					t.Errorf("got %v, callback %+v, document %q, want error %q", err, r, doc, want)
				}
			})
		}
	}
}

func TestSourceThatIsDownFailsTheExport(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", recursive())
	children := make([]int, 100)
	for i := range children {
		children[i] = i + 1
		b.archive.answers["/entities/"+testPI(i+1)] = text(502, "")
	}
	b.archive.add(0, pinax("root"), children...)
	r, doc, err := b.run()
	if err == nil || r.Status != "error" || !strings.HasPrefix(r.Error, "the source is unavailable") || doc != "" {
		t.Errorf("got %v, callback %+v, want an unavailable source", err, r)
	}
}

// TestOutageIsSurvived checks an export during which the source is down for a while.
func TestOutageIsSurvived(t *testing.T) {
	t.Parallel()
	o := recursive()
	o.ParallelBatchSize = 1 // so that the order of requests is known
	b := newBench(t, "mods", o)
	b.archive.add(0, pinax("root"), 1)
	b.archive.add(1, pinax("one"))
	b.archive.answers["/entities/"+testPI(1)] = after(6, b.archive, text(503, ""))
	b.archive.answers["/entities/"+testPI(0)] = func(w http.ResponseWriter, r *http.Request, n int) {
		if n >= 2 && n <= 5 { // a probe of the source
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		b.archive.serve(w, r)
	}
	r, _ := b.mustRun()
	wantCounts(t, r, 2, 0, 0)
	if n := b.archive.count("/entities/" + testPI(0)); n != 6 {
		t.Errorf("got %d probes of the source, want 5", n-1)
	}
}

func TestRetriesAreSpacedAndBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", DefaultOptions())
	b.archive.answers["/entities/"+testPI(0)] = func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 2 {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if _, _, err := b.run(); err == nil {
		t.Fatal("got no error, want a failure")
	}
	if n := b.archive.count("/entities/" + testPI(0)); n != 8 {
		t.Errorf("got %d requests, want 8", n)
	}
	ms := time.Millisecond
	want := []time.Duration{125 * ms, 7000 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 4000 * ms}
	if got := fmt.Sprint(b.clock.waits); got != fmt.Sprint(want) {
		t.Errorf("got delays %v, want %v", got, want)
	}
}

func TestEachThingIsRequestedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mods", recursive())
	b.archive.add(0, pinax("root"), 1)
	b.archive.add(1, with(pinax("one"), "page.ref.json", map[string]any{"url": "https://cdn/x", "ocr": "text"}), 0)
	b.mustRun()
	for path, n := range b.archive.asked {
		if n != 1 {
			t.Errorf("%s: got %d requests, want 1", path, n)
		}
	}
	if len(b.archive.asked) != 5 {
		t.Errorf("got requests %v, want 5 requests", b.archive.asked)
	}
}

func with(components map[string]any, name string, content any) map[string]any {
	components[name] = content
	return components
}

func text(status int, body string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// after responds with the failure n times, then as usual.
func after(n int, a *archive, fail func(http.ResponseWriter, *http.Request, int)) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, i int) {
		if i <= n {
			fail(w, r, i)
			return
		}
		a.serve(w, r)
	}
}

func broken(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }

func truncated(w http.ResponseWriter, _ *http.Request, _ int) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"pi":"`))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
