package nara_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/samples/archive"
	"github.com/sortie-dev/sortie/local/samples/nara"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../testdata/catalog/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTapeWithAnothersNumber(t *testing.T) {
	t.Parallel()
	tapes, err := nara.ParseTapes(bytes.NewReader(read(t, "records.xml")))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for number, u := range tapes {
		got[number] = u.CatalogID
	}
	if diff := cmp.Diff(map[string]string{"007": "501", "008": "502", "009": "503", "010": "504"}, got); diff != "" {
		t.Error(diff)
	}
	seven := tapes["007"]
	if seven.Period.Words() != "May 30, 1958 to July 4, 1958" || seven.AltTitle != "Quay room tape number 7" || len(seven.Headings) != 4 {
		t.Errorf("tape 7: got %+v", seven)
	}
}

func TestConversationsAreCleaned(t *testing.T) {
	t.Parallel()
	units, err := nara.ParseConversations(bytes.NewReader(read(t, "quay.json")))
	if err != nil {
		t.Fatal(err)
	}
	u := units[0]
	want := []archive.Party{
		{Kind: archive.Person, Name: "Hébert, François", Authority: "1"},
		{Kind: archive.Organization, Name: "Pilot station", Authority: "2"},
		{Kind: archive.Person, Name: "Beave, [First name unknown]", Authority: "5"},
	}
	if diff := cmp.Diff(want, u.Participants); diff != "" {
		t.Error(diff)
	}
	if !u.Unidentified || u.Released != "1990-12-08" || u.Release != "First Release" || u.Place != "Quay Room" || u.Coordinates != "57.7, 11.9" {
		t.Errorf("got conversation %+v", u)
	}
	if len(units[1].Participants) != 0 || units[1].Unidentified {
		t.Errorf("empty list of participants: got %+v", units[1].Participants)
	}
}

func TestOtherKinds(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`[1]`, `"text"`, `{}`, `{"conversations": null}`} {
		if _, err := nara.ParseConversations(strings.NewReader(s)); !errors.Is(err, nara.ErrOther) {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{``, `{`, `{"conversations": 1}`, `{"conversations": []} {`} {
		if _, err := nara.ParseConversations(strings.NewReader(s)); err == nil || errors.Is(err, nara.ErrOther) {
			t.Errorf("%s: %v", s, err)
		}
	}
	if _, err := nara.ParseTapes(strings.NewReader(`<ead/>`)); !errors.Is(err, nara.ErrOther) {
		t.Errorf("EAD: %v", err)
	}
	for _, s := range []string{``, `<audiotapes>`, `<audiotapes><catalogRecord/></audiotapes>`} {
		if _, err := nara.ParseTapes(strings.NewReader(s)); err == nil || errors.Is(err, nara.ErrOther) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func FuzzParseConversations(f *testing.F) {
	f.Add(read(f, "quay.json"))
	f.Fuzz(func(t *testing.T, b []byte) {
		units, err := nara.ParseConversations(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, u := range units {
			if u.ID == "" || u.Parent == "" {
				t.Fatalf("got a unit without a parent: %+v", u)
			}
			archive.Describe(u, archive.PI(u.ID), nil)
		}
	})
}

func FuzzParseTapes(f *testing.F) {
	f.Add(read(f, "records.xml"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tapes, err := nara.ParseTapes(bytes.NewReader(b))
		if err != nil {
			return
		}
		for number, u := range tapes {
			if number == "" || u.ID != nara.TapeID(number) {
				t.Fatalf("tape %q: got %+v", number, u)
			}
		}
	})
}
