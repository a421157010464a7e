package samples_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/samples/archive"
)

func TestFindingAidsAreUnderTheirTape(t *testing.T) {
	t.Parallel()
	c := fromEAD(t)
	roots := c.Roots()
	if len(roots) != 1 || roots[0].Title != "Tape 7" || roots[0].Entities != 4 || c.Len() != 4 {
		t.Fatalf("got roots %+v, %d entities", roots, c.Len())
	}
	client := serve(t, c)
	tape := client.entity(roots[0].PI)
	if tape.Parent != "" {
		t.Errorf("root: got parent %s, want no parent", tape.Parent)
	}
	var titles []string
	for _, pi := range tape.Children {
		child := client.entity(pi)
		if child.Parent != tape.PI {
			t.Errorf("%s: got parent %s", pi, child.Parent)
		}
		titles = append(titles, client.pinax(child).Title)
	}
	want := []string{"Harbour Tapes: Conversation 007-001", "Conversation 007-002, at the café", "hrb-conversation-007-010"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Error(diff)
	}
}

func TestKnownErrorsAreDropped(t *testing.T) {
	t.Parallel()
	c := fromEAD(t)
	client := serve(t, c)
	texts, entities := client.all(c)
	for _, text := range texts {
		for _, trap := range []string{
			"1900", "Topics of conversation", "&#", "&amp;", "wuot", "[Unknown", "-05:00", "Long words on rights", "Subject Log", "\u00a0", "\\n \\n",
		} {
			if strings.Contains(text, trap) {
				t.Errorf("%q reached the output:\n%s", trap, text)
			}
		}
	}
	want := pinax{
		ID: entities[1].PI, Title: "Harbour Tapes: Conversation 007-001", Type: "Sound", Institution: "Harbour Library",
		Created: "1958-07-04", Language: "de", Rights: "CC0 (http://creativecommons.org/publicdomain/zero/1.0/)",
		Description: "On July 4, 1958, Ada Brunner and others spoke of dredging & tides.",
		Creator:     []string{"Brunner, Ada (Harbour master)", `Lund, José ("Pepe")`, "Pilot station"},
		Subjects:    []string{"Dredging"}, Place: []string{"North Quay, Harbour"},
	}
	if diff := cmp.Diff(want, client.pinax(entities[1])); diff != "" {
		t.Error(diff)
	}
	if got := client.pinax(entities[2]).Created; got != "1958" {
		t.Errorf("estimate over two months: got created %q", got)
	}
	if got := client.pinax(entities[3]).Created; got != "1958-07-04" {
		t.Errorf("date in words: got created %q", got)
	}
	graph := client.component(entities[1], "cheimarros.json")
	if strings.Count(graph, `"type": "person"`) != 3 || !strings.Contains(graph, `"alternateName": "Brunner, Ada (Ada Maria), 1901-1980"`) {
		t.Errorf("two forms of a name are not one person:\n%s", graph)
	}
	// The history that all conversations share is stored once, at the tape.
	if n := strings.Count(strings.Join(texts, ""), "Microphones stood on the quay."); n != 1 {
		t.Errorf("got the history %d times, want once", n)
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	item := func(id, file, series string) *fstest.MapFile {
		s := `<ead><eadheader><eadid>` + id + `</eadid></eadheader><archdesc level="item"><did><unittitle>` + id + `</unittitle>`
		if series != "" {
			s += `<archref id="parentSeries" href="` + series + `"/>`
		}
		if file != "" {
			s += `<archref id="parentFile" href="` + file + `"/>`
		}
		return &fstest.MapFile{Data: []byte(s + `</did></archdesc></ead>`)}
	}
	tests := map[string]struct {
		files fstest.MapFS
		want  []string // titles of roots, with the number of their entities
	}{
		"two tapes of one series":       {fstest.MapFS{"a.xml": item("a", "t2", "s"), "b/c.XML": item("b", "t10", "s")}, []string{"t2 2", "t10 2"}},
		"an item without a tape":        {fstest.MapFS{"a.xml": item("a", "", "s"), "b.xml": item("b", "", "s")}, []string{"s 3"}},
		"an item without a holder":      {fstest.MapFS{"a.xml": item("a", "", ""), "b.xml": item("b", "t", "")}, []string{"t 2", "a 1"}},
		"a tape with a finding aid":     {fstest.MapFS{"a.xml": item("a", "t", "s"), "t.xml": item("t", "", "s")}, []string{"t 2"}},
		"a series with a finding aid":   {fstest.MapFS{"a.xml": item("a", "t", "s"), "s.xml": item("s", "", "")}, []string{"s 3"}},
		"one that names itself as tape": {fstest.MapFS{"a.xml": item("a", "a", "")}, []string{"a 1"}},
		"hidden files":                  {fstest.MapFS{"a.xml": item("a", "", ""), ".git/b.xml": {Data: []byte("<")}, ".b.xml": {Data: []byte("<")}}, []string{"a 1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := samples.FromEAD(tt.files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range c.Roots() {
				got = append(got, r.Title+" "+string(rune('0'+r.Entities)))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got roots %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSkippedFilesAreNamed(t *testing.T) {
	t.Parallel()
	c, err := samples.FromEAD(fstest.MapFS{
		"a.xml": {Data: []byte("<ead><archdesc/></ead>")}, "b/tapes.xml": {Data: []byte("<tapes/>")}, "b/readme.txt": {}, ".hidden": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []samples.Skipped{
		{File: "b/readme.txt", Reason: "its name does not end in .xml"}, {File: "b/tapes.xml", Reason: "not an EAD finding aid: its root element is <tapes>"},
	}
	if got := c.Skipped(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestComponentsFollowTheirFindingAid reads a finding aid whose components are not ordered by
// ID.
func TestComponentsFollowTheirFindingAid(t *testing.T) {
	t.Parallel()
	component := func(id, level, below string) string {
		return `<c id="` + id + `" level="` + level + `"><did><unittitle>` + id + `</unittitle></did>` + below + `</c>`
	}
	c, err := samples.FromEAD(fstest.MapFS{"a.xml": {Data: []byte(`<ead><eadheader><eadid>a</eadid></eadheader><archdesc level="collection"><dsc>` +
		component("z", "item", "") + component("y", "series", component("x", "file", component("w", "file", ""))) + `</dsc></archdesc></ead>`)}})
	if err != nil {
		t.Fatal(err)
	}
	roots := c.Roots()
	if len(roots) != 1 || roots[0].Entities != 5 || c.Len() != 5 {
		t.Fatalf("got roots %+v, want one with 5 entities", roots)
	}
	client := serve(t, c)
	for id, want := range map[string][]string{"a": {"a#z", "a#y"}, "a#y": {"a#x"}, "a#x": {"a#w"}, "a#z": nil} {
		var pis []string
		for _, each := range want {
			pis = append(pis, archive.PI(each))
		}
		if got := client.entity(archive.PI(id)).Children; !slices.Equal(got, pis) {
			t.Errorf("%s: got children %v, want %v", id, got, want)
		}
	}
}

func TestInvalidFolders(t *testing.T) {
	t.Parallel()
	good := &fstest.MapFile{Data: []byte(`<ead><eadheader><eadid>a</eadid></eadheader><archdesc/></ead>`)}
	tests := map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"cut files":       {fstest.MapFS{"a.xml": good, "x/cut.xml": {Data: []byte("<ead><archdesc>")}, "empty.xml": {}}, []string{"x/cut.xml", "empty.xml"}},
		"one identifier":  {fstest.MapFS{"a.xml": good, "b.xml": good}, []string{"a.xml", "b.xml", `"a"`}},
		"no finding aid":  {fstest.MapFS{"a.xml": {Data: []byte("<tapes/>")}}, []string{"no EAD finding aid", "1 other"}},
		"nothing":         {fstest.MapFS{}, []string{"no EAD finding aid"}},
		"an odd encoding": {fstest.MapFS{"odd.xml": {Data: []byte(`<?xml version="1.0" encoding="klingon"?><ead/>`)}}, []string{"odd.xml", "klingon"}},
		"each holds another": {fstest.MapFS{
			"a.xml": {Data: []byte(`<ead><eadheader><eadid>a</eadid></eadheader><archdesc><did><archref id="parentFile" href="b"/></did></archdesc></ead>`)},
			"b.xml": {Data: []byte(`<ead><eadheader><eadid>b</eadid></eadheader><archdesc><did><archref id="parentFile" href="a"/></did></archdesc></ead>`)},
		}, []string{"contain each other"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := samples.FromEAD(tt.files)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
	if _, err := samples.FromEAD(os.DirFS("testdata/nowhere")); err == nil || !strings.Contains(err.Error(), "cannot read the folder") {
		t.Errorf("missing folder: got %v", err)
	}
}

func TestCatalogIsOneTree(t *testing.T) {
	t.Parallel()
	c, err := samples.FromCatalog(os.DirFS("testdata/catalog"))
	if err != nil {
		t.Fatal(err)
	}
	// 1 collection, 1 series, the tapes 7, 8, 9 and 20 with one conversation each. The record
	// of tape 10 has no conversation.
	if roots := c.Roots(); len(roots) != 1 || roots[0].Entities != 10 || c.Len() != 10 || roots[0].Title != "Harbour Tapes" {
		t.Fatalf("got roots %+v, %d entities", c.Roots(), c.Len())
	}
	client := serve(t, c)
	texts, entities := client.all(c)
	for _, text := range texts {
		for _, trap := range []string{"&#", "wuot", "[Unknown", "[Name", "[First", "\\r", "-05:00", "Sound Recordings", "Attic desk"} {
			if strings.Contains(text, trap) {
				t.Errorf("%q reached the output:\n%s", trap, text)
			}
		}
	}
	var titles []string
	for _, m := range entities {
		titles = append(titles, client.pinax(m).Title)
	}
	want := []string{
		"Harbour Tapes", "Quay Room Telephone Recordings", "Audiotape 007", "Audiotape 008", "Audiotape 009", "Audiotape 020",
		"Conversation 007-001", "Conversation 008-001", "Conversation 009-002", "Conversation 020-003",
	}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Brunner, Ada (Ada Maria), 1901-1980", "Dredgers & Sons"}, client.pinax(entities[2]).Creator); diff != "" {
		t.Error(diff)
	}
	conversation := client.pinax(entities[6])
	if diff := cmp.Diff([]string{"Hébert, François", "Pilot station", "Beave"}, conversation.Creator); diff != "" {
		t.Error(diff)
	}
	if want := `On May 30, 1958, François Hébert and Ada ("Skipper") Brunner met.`; conversation.Description != want {
		t.Errorf("description %q, want %q", conversation.Description, want)
	}
	if conversation.Created != "1958-05-30" { // 3 o'clock on the 31st in UTC
		t.Errorf("got created %q", conversation.Created)
	}
	if got := client.pinax(entities[7]).Created; got != "1958" {
		t.Errorf("estimate: got created %q", got)
	}
}

func TestInvalidCatalogs(t *testing.T) {
	t.Parallel()
	list := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(`{"conversations": [` + s + `]}`)} }
	one := `{"identifier": "c", "tapeNumber": "1"}`
	tests := map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"cut JSON":         {fstest.MapFS{"cut.json": {Data: []byte(`{"conversations": [`)}}, []string{"cut.json"}},
		"no identifier":    {fstest.MapFS{"a.json": list(`{"tapeNumber": "1"}`)}, []string{"a.json", "conversation 1", "no identifier"}},
		"no tape":          {fstest.MapFS{"a.json": list(`{"identifier": "c"}`)}, []string{"a.json", "c: no tapeNumber"}},
		"twice in a file":  {fstest.MapFS{"a.json": list(one + "," + one)}, []string{"a.json", `"c"`}},
		"twice":            {fstest.MapFS{"a.json": list(one), "b.json": list(one)}, []string{"a.json", "b.json"}},
		"broken XML":       {fstest.MapFS{"a.json": list(one), "r.xml": {Data: []byte(`<audiotapes><catalogRecord>`)}}, []string{"r.xml"}},
		"no conversations": {fstest.MapFS{"r.xml": {Data: []byte(`<audiotapes/>`)}}, []string{"no list of conversations"}},
		"a tape twice": {fstest.MapFS{"a.json": list(one), "r.xml": {Data: []byte(
			`<audiotapes><catalogRecord naraID="5"><audiotapeNumber>1</audiotapeNumber></catalogRecord><catalogRecord naraID="6"><audiotapeNumber>1</audiotapeNumber></catalogRecord></audiotapes>`)}}, []string{"r.xml", "tape 1", "5", "6"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := samples.FromCatalog(tt.files)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}
