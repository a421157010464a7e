package worker

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fill adds a root, a child with files, graph and narrative, and an incomplete child.
func fill(a *archive) {
	a.add(0, map[string]any{"pinax.json": map[string]any{
		"id": "coll-1", "title": "Papers & <letters>", "type": "Collection",
		"creator": []string{"Doe, Jane", "Office of Examples"}, "institution": "Example University Library",
		"created": "1971", "access_url": "PLACEHOLDER", "language": "nl-BE", "subjects": []string{"Letters", " "},
		"place": []string{"Ghent", "Bruges"}, "rights": "Public domain", "source": "Attic, box 3",
		"description": "What the record says.",
	}, "description.md": []byte("# The papers\r\n\r\nA narrative.\n")}, 1, 2)
	one := a.add(1, map[string]any{
		"pinax.json": map[string]any{
			"id": "item-1", "title": "A letter", "type": "Text", "creator": "Jane Doe", "institution": "Jane Doe",
			"created": "c. 1971", "access_url": "https://example.org/items/é 1?x=[1]", "language": []string{"tlh", "Klingon", "art-x-own"},
			"description": "Only a summary.",
		},
		"cheimarros.json": map[string]any{
			"entities": map[string]any{
				"p1": map[string]any{
					"type": "person", "label": "Doe, Jane",
					"properties": map[string]any{
						"description": "not noted", "born": "1940",
						"employer": map[string]any{"type": "entity_ref", "code": "o1"},
						"visited":  []any{map[string]any{"type": "entity_ref", "code": "pl1"}, "nowhere"},
					},
				},
				"o1":              map[string]any{"type": "organization", "label": "Office of Examples"},
				"pl1":             map[string]any{"type": "place", "label": "Ghent"},
				"c1":              map[string]any{"type": "concept", "label": "Correspondence"},
				"d1":              map[string]any{"type": "document", "label": "The letter"},
				"date_1971_10":    map[string]any{"type": "date", "label": "October 1971"},
				"date_1971_10_21": map[string]any{"type": "date", "label": "21 October 1971"},
				"date_sometime":   map[string]any{"type": "date", "label": "Sometime"},
				"e1":              map[string]any{"type": "event", "label": "A visit"},
			},
			"relations": []any{
				map[string]any{"source": "p1", "target": "o1", "type": "works_for"},
				map[string]any{"source": "p1", "target": "unknown", "type": "lost"},
			},
		},
		"page-1.ref.json": map[string]any{
			"url": "https://cdn.example.org/page 1.jpg", "ipfs_cid": "bafybeipage", "type": "image/jpeg", "size": 1234,
			"filename": "page-1.jpg", "ocr": "Dear \"all\",\n\ta < b & c\u0007\r\n",
		},
		"page-2.ref.json":    map[string]any{"url": "https://cdn.example.org/page-2"},
		"source.txt":         []byte("as it came"),
		"cheimarros-raw.txt": []byte("raw"),
	})
	one["parent_pi"] = testPI(0)
	one["ver"] = 3
	a.add(2, map[string]any{"catalog.xml": []byte("<catalog/>")})["ts"] = "not a time"
}

func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	for _, format := range FormatNames() {
		for _, collection := range []bool{false, true} {
			name := format + "-one"
			if collection {
				name = format + "-collection"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o := DefaultOptions()
				o.Recursive = collection
				b := newBench(t, format, o)
				fill(b.archive)
				if !collection {
					b.config.PI = mustPI(t, testPI(1))
				}
				_, doc := b.mustRun()
				wantValid(t, doc)
				wantGolden(t, filepath.Join("testdata", "golden", name+".xml"), doc)
			})
		}
	}
}

func wantGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a test's data
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got a document that differs from %s (go test -update rewrites it):\n%s", file, got)
	}
}

func TestOptionsShapeTheDocument(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name        string
		options     func(*Options)
		has, hasNot []string
	}{
		{
			name: "full", options: func(*Options) {},
			has: []string{
				`type="ocr"`, "A visit", "cheimarros-property", "Doe, Jane: employer: Office of Examples",
				"Doe, Jane: visited: Ghent; nowhere", "Doe, Jane → works_for → Office of Examples", ">1971-10<", ">Sometime<",
			},
			hasNot: []string{"not noted", "lost", "<topic>The letter"},
		},
		{
			name: "minimal", options: func(o *Options) { o.CheimarrosMode = "minimal" },
			has: []string{"Correspondence", "1971-10-21"}, hasNot: []string{"A visit", "cheimarros-property", "cheimarros-relation"},
		},
		{
			name: "skip", options: func(o *Options) { o.CheimarrosMode = "skip" },
			has: []string{"cheimarros.json"}, hasNot: []string{"Correspondence", "A visit", "cheimarros-property"},
		},
		{
			name: "no OCR", options: func(o *Options) { o.IncludeOCR = false },
			has: []string{"page-1.jpg"}, hasNot: []string{`type="ocr"`},
		},
		{
			name: "root alone", options: func(o *Options) { o.Recursive, o.MaxDepth = true, 0 },
			has: []string{"modsCollection"}, hasNot: []string{"entity-" + testPI(1)},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := DefaultOptions()
			row.options(&o)
			b := newBench(t, "mods", o)
			fill(b.archive)
			if !o.Recursive {
				b.config.PI = mustPI(t, testPI(1))
			}
			_, doc := b.mustRun()
			wantValid(t, doc)
			for _, want := range row.has {
				if !strings.Contains(doc, want) {
					t.Errorf("got a document without %q", want)
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

func TestMARCRecordStaysWithinItsLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t, "marcxml", DefaultOptions())
	children := make([]int, 5000)
	for i := range children {
		children[i] = i + 1
	}
	components := with(pinax(strings.Repeat("Ä long title ", 2000)), "description.md", []byte(strings.Repeat("words\nand ", 1<<16)))
	b.archive.add(0, components, children...)
	r, doc := b.mustRun()
	wantCounts(t, r, 1, 0, 0)
	wantValid(t, doc)
	if !strings.Contains(doc, "fields were left out") || !strings.Contains(doc, "…") {
		t.Error("got no cut, want one")
	}
	var record struct {
		Fields []struct {
			Subfields []string `xml:"subfield"`
		} `xml:"datafield"`
	}
	if err := xml.Unmarshal([]byte(doc), &record); err != nil {
		t.Fatal(err)
	}
	total := 24 + 1 + 4*13 + 26 + 7 + 16 + 40
	for _, f := range record.Fields {
		size := 3
		for _, s := range f.Subfields {
			size += 2 + len(s)
		}
		if size > 9999 {
			t.Errorf("got a field of %d bytes, want at most 9999", size)
		}
		total += size + 12
	}
	if total > 99999 {
		t.Errorf("got a record of %d bytes, want at most 99999", total)
	}
}

func TestTwoCreatorsAreOneMainEntry(t *testing.T) {
	t.Parallel()
	b := newBench(t, "marcxml", recursive())
	fill(b.archive)
	_, doc := b.mustRun()
	for i, rec := range strings.Split(doc, "<record ")[1:] {
		if n := strings.Count(rec, `tag="100"`) + strings.Count(rec, `tag="110"`); n > 1 {
			t.Errorf("record %d: got %d main entries, want 1", i, n)
		}
	}
}

// wantWellFormed parses a document with encoding/xml, which the validator does not use.
func wantWellFormed(doc string) error {
	decoder := xml.NewDecoder(strings.NewReader(doc))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("not well-formed: %w", err)
		}
	}
}
