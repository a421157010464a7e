package record

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const onePI = "01K9XVBAQZF9EHDRXGBEADTZYY"

func one(t *testing.T) PI {
	t.Helper()
	pi, err := ParsePI(onePI)
	if err != nil {
		t.Fatal(err)
	}
	return pi
}

func TestParsePI(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		onePI: true, "00000000000000000000000000": true, strings.ToLower(onePI): false, onePI[1:]: false, onePI + "0": false,
		"I" + onePI[1:]: false, "": false, strings.Replace(onePI, "F", "/", 1): false,
	} {
		pi, err := ParsePI(text)
		if (err == nil) != ok || ok && pi.String() != text {
			t.Errorf("ParsePI(%q) = %v, %v", text, pi, err)
		}
	}
}

func TestParseManifest(t *testing.T) {
	t.Parallel()
	body := "\ufeff" + `{"pi":"` + onePI + `","ver":2,"ts":" 2025-11-13T05:34:54.719Z","manifest_cid":"m","prev_cid":null,
		"components":{"b":"cb","a":{"/":"ca"},"c":7},"children_pi":["` + onePI + `","x",null],"parent_pi":"` + onePI + `","note":"n"}`
	got, err := ParseManifest(one(t), []byte(body))
	want := Manifest{
		PI: one(t), Version: 2, Timestamp: "2025-11-13T05:34:54.719Z", CID: "m", Components: []Component{{"a", "ca"}, {"b", "cb"}, {"c", ""}},
		Children: []PI{one(t)}, Parent: one(t), BadLinks: 1,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestParseManifestLaterShapes(t *testing.T) {
	t.Parallel()
	got, err := ParseManifest(one(t), []byte(`{"id":"`+onePI+`","cid":"m","type":"x","properties":{"a":1},"ver":1}`))
	if err != nil || got.CID != "m" || len(got.Components) != 0 {
		t.Errorf("ParseManifest = %+v, %v", got, err)
	}
	for body, want := range map[string]string{
		`{"id":"` + onePI + `","merged":true,"merged_into":"B"}`: "merged into B",
		`{"id":"` + onePI + `","merged":true}`:                   "merged into another entity",
		`{"id":"` + onePI + `","status":"deleted"}`:              "deleted",
	} {
		_, err := ParseManifest(one(t), []byte(body))
		if _, ok := errors.AsType[*Gone](err); !ok || err.Error() != want {
			t.Errorf("ParseManifest(%s) = %v, want %q", body, err, want)
		}
	}
}

func TestManifestTime(t *testing.T) {
	t.Parallel()
	fromPI := time.Date(2025, 11, 13, 5, 34, 54, 719e6, time.UTC)
	for text, want := range map[string]time.Time{
		"2024-02-29T12:00:00+02:00": time.Date(2024, 2, 29, 10, 0, 0, 0, time.UTC), "": fromPI, "yesterday": fromPI,
		"0000-01-01T00:00:00Z": fromPI,
	} {
		if got := (Manifest{PI: one(t), Timestamp: text}).Time(); !got.Equal(want) {
			t.Errorf("Time of %q = %v, want %v", text, got, want)
		}
	}
	last, _ := ParsePI(strings.Repeat("Z", PILength)) // beyond a ULID's time
	if got := (Manifest{PI: last}).Time(); got.Unix() != 0 {
		t.Errorf("Time = %v", got)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"pi":"` + onePI + `","ver":1,"components":{"a":"b"},"children_pi":["x"]}`))
	f.Add([]byte(`{"id":"` + onePI + `","merged":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := ParseManifest(PI{}, body)
		if _, gone := errors.AsType[*Gone](err); err != nil && !gone && !errors.Is(err, ErrNotManifest) {
			t.Errorf("error of another kind: %v", err)
		}
		for _, child := range m.Children {
			if _, err := ParsePI(child.String()); err != nil {
				t.Errorf("child %q is no PI", child)
			}
		}
	})
}

func TestParsePinaxIsLenient(t *testing.T) {
	t.Parallel()
	got, err := ParsePinax([]byte(`{"id":" a ","title":["T",""],"type":null,"creator":"One","created":1971,"access_url":"Placeholder",
		"subjects":"s","place":["x",{"y":1},2],"rights":true,"unknown":{}}`))
	want := &Pinax{
		ID: "a", Title: "T", Creators: []string{"One"}, Created: "1971", Subjects: []string{"s"}, Places: []string{"x", "2"}, Rights: []string{"true"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func FuzzParsePinax(f *testing.F) {
	f.Add([]byte(`{"title":"x","creator":["a",1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := ParsePinax(body); err == nil && strings.TrimSpace(p.Title) != p.Title {
			t.Errorf("title %q is not trimmed", p.Title)
		}
	})
}

func FuzzParseGraph(f *testing.F) {
	f.Add([]byte(`{"entities":{"a":{"type":"person","label":"A","properties":{"k":[{"type":"entity_ref","code":"a"}]}}},"relations":[{"source":"a","target":"a","type":"r"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		g, err := ParseGraph(body)
		if err != nil {
			return
		}
		for i, node := range g.Nodes {
			if i > 0 && g.Nodes[i-1].Code >= node.Code {
				t.Error("nodes are not in order")
			}
		}
	})
}
