package archive_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

func TestNewTreeRefusesInvalidUnits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		units []archive.Unit
		want  string
	}{
		"no identifier":       {[]archive.Unit{{Title: "Tape"}}, "no identifier"},
		"an identifier twice": {[]archive.Unit{{ID: "a"}, {ID: "a"}}, `identifier "a"`},
		"a parent elsewhere":  {[]archive.Unit{{ID: "a", Parent: "b"}}, `unknown parent "b"`},
		"a ring":              {[]archive.Unit{{ID: "a", Parent: "b"}, {ID: "b", Parent: "a"}, {ID: "c"}}, "2 units contain each other"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := archive.NewTree(tt.units); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestPIDependsOnIdentifierOnly(t *testing.T) {
	t.Parallel()
	if got := archive.PI("37-wht-audiotape-281"); got != "01K9XVBAQZF9EHDRXGBEADTZYY" {
		t.Errorf("got PI %s of tape 281", got)
	}
	if first, second := archive.PI("a"), archive.PI("a"); archive.PI("b") == first || first != second {
		t.Error("got PIs that do not depend on the identifiers alone")
	}
	random := [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if got, ok := archive.ParseULID(archive.ULID(random)); !ok || got != random {
		t.Errorf("got %v, %v from the ULID", got, ok)
	}
	for _, text := range []string{"", "01K9XVBAQZ", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", archive.ULID(random) + "0", strings.ToLower(archive.ULID(random))} {
		if _, ok := archive.ParseULID(text); ok {
			t.Errorf("%q: got a parsed ULID, want none", text)
		}
	}
}

// describe returns the graph and the narrative of a unit.
func describe(t *testing.T, u archive.Unit) (graph struct {
	Entities map[string]struct {
		Type, Label string
		Properties  map[string]any
	}
	Relations []struct{ Source, Target, Type string }
}, text string,
) {
	t.Helper()
	components, _ := archive.Describe(u, archive.PI(u.ID), nil)
	for _, c := range components {
		switch c.Name {
		case "cheimarros.json":
			if err := json.Unmarshal(c.Body.Head, &graph); err != nil {
				t.Fatal(err)
			}
		case "description.md":
			text = string(c.Body.Head)
		}
	}
	return graph, text
}

func TestGraphHasNoDuplicates(t *testing.T) {
	t.Parallel()
	ada := archive.Party{Kind: archive.Person, Name: "Brunner, Ada (Harbour master)", Authority: "1"}
	graph, _ := describe(t, archive.Unit{
		ID: "c1", Level: archive.LevelItem, Title: "Conversation 1",
		Participants: []archive.Party{ada, {Kind: archive.Organization, Name: "Pilot station"}},
		Discussed:    []archive.Party{ada, {Kind: archive.Person, Name: "Keller, Bo"}},
		Headings: []archive.Heading{
			{Kind: archive.HeadingPerson, Text: "Brunner, Ada (Ada Maria), 1901-1980", URI: "http://id.example/ada"},
			{Kind: archive.HeadingOrganization, Text: "Pilot station"},
			{Kind: archive.HeadingGenre, Text: "Audiotapes"},
			{Kind: archive.HeadingTopic, Text: "Dredging"},
		},
		Period: archive.Period{Start: "1958-05-02", End: "1958-05-20", DayEstimated: true},
		Place:  "North Quay", Institution: "Harbour Library",
		Above: []archive.Ref{{Level: archive.LevelSeries, ID: "s", Title: "Quay"}, {Level: archive.LevelFile, ID: "t", Title: "Tape"}},
	})
	count := map[string]int{}
	for _, e := range graph.Entities {
		count[e.Type]++
	}
	for kind, want := range map[string]int{"person": 2, "organization": 2, "place": 1, "date": 1, "concept": 2, "document": 3} {
		if count[kind] != want {
			t.Errorf("got %d of type %s, want %d: %v", count[kind], kind, want, graph.Entities)
		}
	}
	if p := graph.Entities["person_brunner_ada"].Properties; p["alternateName"] != "Brunner, Ada (Ada Maria), 1901-1980" || p["uri"] != "http://id.example/ada" {
		t.Errorf("got %v for Ada", p)
	}
	if d := graph.Entities["date_1958_05"]; d.Label != "1958-05" || d.Properties["latest"] != "1958-05-20" {
		t.Errorf("got date %+v", d)
	}
	for _, r := range graph.Relations {
		if graph.Entities[r.Source].Label == "" || graph.Entities[r.Target].Label == "" {
			t.Errorf("%+v refers to an unknown entity", r)
		}
		if r.Type == "discusses" && r.Target != "person_keller_bo" {
			t.Errorf("got a participant as discussed: %+v", r)
		}
	}
}

func TestUnidentifiedParticipantsAreNotNamed(t *testing.T) {
	t.Parallel()
	graph, text := describe(t, archive.Unit{ID: "c1", Level: archive.LevelItem, Title: "Conversation 1", Unidentified: true})
	if len(graph.Entities) != 1 {
		t.Errorf("got entities %v", graph.Entities)
	}
	if !strings.Contains(text, "unidentified participants") {
		t.Errorf("got narrative %q", text)
	}
}
