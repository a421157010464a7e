package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// slow decodes an event part by part.
func slow(document []byte) (e Envelope, err error) {
	type fields Envelope
	e.Unknown, err = decode(document, (*fields)(&e))
	return e, err
}

// TestPlainDecodingIsTheSame decodes the examples and changed ones in both ways.
func TestPlainDecodingIsTheSame(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("examples/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d examples, %v", len(files), err)
	}
	plain, others := 0, 0
	for _, file := range files {
		document, err := os.ReadFile(file) //nolint:gosec // a file of the examples
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if json.Compact(&compact, document) != nil {
			continue
		}
		if e, err := slow(document); err == nil && e.plain() && !samePlain(t, document) {
			t.Errorf("%s has known fields only and is not decoded at once", file)
		}
		for _, whole := range [][]byte{document, compact.Bytes()} {
			for _, changed := range changes(whole) {
				if samePlain(t, changed) {
					plain++
				} else {
					others++
				}
			}
		}
	}
	if plain < 2*len(files) || others < 2*len(files) {
		t.Errorf("got %d documents of known fields and %d others, want many of both", plain, others)
	}
}

// samePlain reports whether a document was decoded at once, after comparing the event.
func samePlain(t *testing.T, document []byte) bool {
	t.Helper()
	var e Envelope
	if !e.decodePlain(document) {
		return false
	}
	want, err := slow(document)
	if err != nil || !reflect.DeepEqual(e, want) {
		t.Errorf("got %+v of %s, want %+v, %v", e, document, want, err)
	}
	return true
}

// changes returns a document and changed ones, some of which are malformed.
func changes(document []byte) [][]byte {
	all := [][]byte{document}
	for _, pair := range [][2]string{
		{`"eventId"`, `"EventId"`},
		{`"eventId"`, `"event\u0049d"`},
		{`"eventId"`, `"new": {"a": [1, "}"]}, "eventId"`},
		{`"eventId"`, `"eventId": "twice", "eventId"`},
		{`"subject"`, `"new": 1, "subject"`},
		{`"subject"`, `"Subject"`},
		{`"actor":`, `"actor": null, "actor":`},
		{`"actor"`, `"new"`},
		{`"state"`, `"new": "\"", "state"`},
		{`"job"`, `"JOB"`},
		{`"runId"`, `"runId": "twice", "runId"`},
		{`"schemaVersion"`, `"metrics": {"a": 1.5, "b": {"c": [{}]}}, "schemaVersion"`},
		{`"schemaVersion"`, `"truncated": ["a, \"b\\"], "schemaVersion"`},
		{`"schemaVersion"`, `"notifier": {"id": "n"}, "schemaVersion"`},
		{`"schemaVersion"`, `"job": null, "schemaVersion"`},
		{`"schemaVersion"`, `"actor": 5, "schemaVersion"`},
		{"}", "}}"},
		{"}", ",}"},
		{":", ""},
		{`"`, ""},
	} {
		all = append(all, bytes.Replace(document, []byte(pair[0]), []byte(pair[1]), 1))
	}
	for i := range 20 {
		all = append(all, document[:len(document)*i/20])
	}
	return append(all, append(bytes.Clone(document), " x"...), append([]byte("\n "), document...), []byte("null"), []byte("[]"))
}

// FuzzPlainDecoding decodes what a reader may get.
func FuzzPlainDecoding(f *testing.F) {
	for i, changed := range changes([]byte(`{"schemaVersion":"orch.event.v1","eventId":"urn:orch:event:x","actor":{"subject":"a"},"job":{"runId":"r","state":"S"}}`)) {
		f.Add(changed)
		f.Add(fmt.Append(nil, string(changed), i))
	}
	f.Fuzz(func(t *testing.T, document []byte) { samePlain(t, document) })
}

func BenchmarkParse(b *testing.B) {
	document, err := os.ReadFile("examples/job.completed.json")
	if err != nil {
		b.Fatal(err)
	}
	for name, parse := range map[string]func([]byte) (Envelope, error){"at once": Parse, "part by part": slow} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := parse(document); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
