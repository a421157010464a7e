package worker

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// nasty are values that broke exporters. They are used besides random ones.
var nasty = []string{
	"", " ", "\x00", "a\x0bb\x1f", "]]>", "<!--", "&amp;&#0;", "\ufffe\uffff", "\xff\xfe", "\r\n\t", "::", "http://[", "//x:y/",
	"%", "%zz", "a:b", "://", "1971-13-45", "0000", "en", "zxx", "PLACEHOLDER", "http://u:p@h:99999999/ü?q#f#g", "mailto:",
	strings.Repeat("long ", 4000), "𝄞\u2028\u0085", "#", "?", "http://host:80a/", "\ufeffx",
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(nasty), rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }))
}

// anyValue generates the value of a JSON member, of the right type or not.
func anyValue() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Map(anyText(), func(s string) any { return s }),
		rapid.Map(rapid.SliceOfN(anyText(), 0, 3), func(s []string) any { return s }),
		rapid.SampledFrom([]any{nil, 12, 1.5e30, true, map[string]any{"a": 1}, []any{nil, 3, []any{"x"}}}),
	)
}

func anyObject(t *rapid.T, label string, names ...string) []byte {
	object := map[string]any{}
	for _, name := range names {
		if rapid.Bool().Draw(t, label+" has "+name) {
			object[name] = anyValue().Draw(t, label+"."+name)
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func anyGraph(t *rapid.T) []byte {
	kinds := []string{"person", "organization", "place", "concept", "date", "document", "Event", ""}
	nodes := map[string]any{}
	var codes []string
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		code := rapid.OneOf(rapid.SampledFrom([]string{"date_1971", "date_1971_02_31", "a", "b"}), anyText()).Draw(t, "code")
		codes = append(codes, code)
		nodes[code] = map[string]any{
			"type": rapid.SampledFrom(kinds).Draw(t, "type"), "label": anyValue().Draw(t, "label"),
			"properties": map[string]any{anyText().Draw(t, "key"): anyValue().Draw(t, "value"), "n": i},
		}
	}
	graph := map[string]any{"entities": nodes}
	if len(codes) > 0 {
		graph["relations"] = []any{map[string]any{
			"source": rapid.SampledFrom(codes).Draw(t, "source"), "target": rapid.SampledFrom(codes).Draw(t, "target"),
			"type": anyValue().Draw(t, "relation"),
		}}
	}
	body, err := json.Marshal(graph)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func anyEntity(t *rapid.T, n int) *record.Entity {
	pi, _ := record.ParsePI(testPI(n))
	m := record.Manifest{
		PI: pi, Version: rapid.IntRange(-1, 3).Draw(t, "version"), CID: anyText().Draw(t, "cid"),
		Timestamp: rapid.OneOf(rapid.SampledFrom([]string{"2025-11-13T05:34:54.719Z", "99999-01-01", "0000-01-01T00:00:00Z"}), anyText()).Draw(t, "ts"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "children") {
		m.Children = append(m.Children, pi)
	}
	if rapid.Bool().Draw(t, "has a parent") {
		m.Parent = pi
	}
	var parts []record.Part
	add := func(name string, body []byte) {
		c := record.Component{Name: name, CID: "bafkreia"}
		m.Components = append(m.Components, c)
		parts = append(parts, record.Part{Component: c, Body: bytes.NewReader(body), Size: int64(len(body))})
	}
	if rapid.IntRange(0, 9).Draw(t, "has a pinax") > 0 {
		add("pinax.json", anyObject(t, "pinax", "id", "title", "type", "creator", "institution", "created", "access_url",
			"language", "subjects", "description", "source", "rights", "place"))
	}
	add("cheimarros.json", anyGraph(t))
	add("description.md", []byte(anyText().Draw(t, "narrative")))
	add(anyText().Draw(t, "file")+".ref.json", anyObject(t, "file", "url", "ipfs_cid", "type", "size", "filename", "ocr"))
	m.Components = append(m.Components, record.Component{Name: anyText().Draw(t, "other"), CID: anyText().Draw(t, "other's CID")})
	return record.Assemble(m, record.Position{Depth: n, Path: []record.PI{pi}}, parts)
}

func TestAnyEntityBecomesAValidDocument(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entities := []*record.Entity{anyEntity(t, 0), anyEntity(t, 1)}
		mode := rapid.SampledFrom([]formats.GraphMode{formats.GraphFull, formats.GraphMinimal, formats.GraphSkip}).Draw(t, "mode")
		for name, begin := range formatTable() {
			for _, collection := range []bool{false, true} {
				o := formats.Options{Collection: collection, OCR: true, Graph: mode, Links: formats.DefaultLinks()}
				doc := document(t, begin(o), entities, collection)
				if again := document(t, begin(o), entities, collection); again != doc {
					t.Fatalf("%s: got another document the second time (-first +second):\n%s", name, cmp.Diff(doc, again))
				}
				if err := wantWellFormed(doc); err != nil {
					t.Fatalf("%s: %v\n%s", name, err, doc)
				}
				wantValid(t, doc)
			}
		}
	})
}

func document(t *rapid.T, f formats.Format, entities []*record.Entity, collection bool) string {
	var out strings.Builder
	w := xmlstream.New(&out)
	if !collection {
		entities = entities[:1]
	}
	f.Open(w, entities[0])
	for _, e := range entities {
		if err := f.Record(w, e); err != nil {
			t.Fatal(err)
		}
	}
	f.Close(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
