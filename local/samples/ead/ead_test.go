package ead_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/sortie-dev/sortie/local/samples/archive"
	"github.com/sortie-dev/sortie/local/samples/ead"
)

// aid returns a finding aid with the content of <did> and the elements after it.
func aid(did, after string) string {
	return `<ead xmlns="urn:isbn:1-931666-22-9" xmlns:xlink="http://www.w3.org/1999/xlink"><archdesc level="item"><did>` + did + `</did>` + after + `</archdesc></ead>`
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		document string
		got      func(archive.Unit) string
		want     string
	}{
		"an identifier from the file's name": {aid("", ""), func(u archive.Unit) string { return u.ID + "|" + u.Title }, "name|name"},
		"a title with its date inside":       {aid(`<unittitle>Letters, <unitdate>1958</unitdate></unittitle>`, ""), func(u archive.Unit) string { return u.Title }, "Letters"},
		"a title in pieces":                  {aid(`<unittitle>A <emph>very</emph>long<lb/>title</unittitle>`, ""), func(u archive.Unit) string { return u.Title }, "A verylong title"},
		"unitdate/@normal contradicted by its text": {
			aid(`<unitdate normal="1971-02-16/1971-02-16">October 21, 1971</unitdate>`, ""), func(u archive.Unit) string { return u.Period.Created() }, "1971-10-21",
		},
		"unitdate/@normal of another year": {aid(`<unitdate normal="1971-02-16">sometime in 1973</unitdate>`, ""), func(u archive.Unit) string { return u.Period.Created() }, ""},
		"unitdate/@normal that agrees":     {aid(`<unitdate normal="1950/1960">1950-1960</unitdate>`, ""), func(u archive.Unit) string { return u.Period.Words() }, "1950 to 1960"},
		"unitdate/@normal alone":           {aid(`<unitdate normal="1971-02-16"/>`, ""), func(u archive.Unit) string { return u.Period.Created() }, ""},
		"a broken time, and words": {
			aid("", `<odd id="conversationDateTime" altrender="soon"><p id="startDate">June 4, 1973</p><p id="endDate">June 3, 1973</p></odd>`),
			func(u archive.Unit) string { return u.Period.Words() }, "June 4, 1973",
		},
		"an abstract of another kind": {aid(`<abstract>On tides.</abstract>`, ""), func(u archive.Unit) string { return u.Abstract }, "On tides."},
		"scope and content":           {aid("", `<scopecontent><head>Scope</head><p>On tides.</p><p>And wind.</p></scopecontent>`), func(u archive.Unit) string { return u.Abstract }, "On tides.\n\nAnd wind."},
		"a subject log":               {aid("", `<dsc><head>Log</head><list><item>They greet</item><item>They leave</item></list></dsc>`), func(u archive.Unit) string { return u.Log }, "They greet They leave"},
		"an origin without a role": {
			aid(`<origination><persname>Lund, Bo</persname></origination>`, ""), func(u archive.Unit) string { return u.Participants[0].Name }, "Lund, Bo",
		},
		"photographs":           {aid(`<physdesc>3 photographs</physdesc>`, ""), func(u archive.Unit) string { return u.Form }, "StillImage"},
		"a text":                {aid("", ""), func(u archive.Unit) string { return u.Form }, "Text"},
		"a language with a tag": {aid(`<langmaterial><language langcode="gsw"/></langmaterial>`, ""), func(u archive.Unit) string { return u.Language }, "gsw"},
		"an unknown language":   {aid(`<langmaterial><language langcode="???"/></langmaterial>`, ""), func(u archive.Unit) string { return u.Language }, ""},
		"rights in words":       {aid("", `<userestrict><head>Rights</head><p>Ask first.</p></userestrict>`), func(u archive.Unit) string { return u.Rights }, "Ask first."},
		"an invalid URI":        {aid("", `<controlaccess><subject authfilenumber="sh85">Tides</subject></controlaccess>`), func(u archive.Unit) string { return u.Headings[0].Text + u.Headings[0].URI }, "Tides"},
		"a holder by number":    {aid(`<archref id="parentFile"><unitid>13</unitid></archref>`, ""), func(u archive.Unit) string { return u.Above[0].ID }, "naid-13"},
		"an entity of HTML":     {`<!DOCTYPE ead SYSTEM "ead.dtd">` + aid(`<unittitle>Tides&nbsp;&amp; wind</unittitle>`, ""), func(u archive.Unit) string { return u.Title }, "Tides & wind"},
		"a byte order mark":     {"\ufeff" + aid(`<unittitle>Tides</unittitle>`, ""), func(u archive.Unit) string { return u.Title }, "Tides"},
		"UTF-16": {
			wide(`<?xml version="1.0" encoding="UTF-16"?>` + aid(`<unittitle>Gezeiten für alle</unittitle>`, "")),
			func(u archive.Unit) string { return u.Title }, "Gezeiten für alle",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := ead.Parse(strings.NewReader(tt.document), "name")
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.got(u); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// wide returns s in little-endian UTF-16 with a byte order mark.
func wide(s string) string {
	var b bytes.Buffer
	b.Write([]byte{0xff, 0xfe})
	for _, unit := range utf16.Encode([]rune(s)) {
		b.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return b.String()
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		document string
		other    bool
	}{
		"nothing":       {"", false},
		"words":         {"a finding aid", false},
		"a cut element": {"<ead><archdesc>", false},
		"crossed tags":  {"<ead><a></ead></a>", false},
		"depth":         {strings.Repeat("<ead>", 300), false},
		"another kind":  {"<mods/>", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := ead.Parse(strings.NewReader(tt.document), "x"); err == nil || errors.Is(err, ead.ErrOther) != tt.other {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"37-hrb-conversation-007-001.xml", "37-hrb-conversation-007-002.xml", "late/hrb-conversation-007-010.xml"} {
		b, err := os.ReadFile("../testdata/ead/tape-007/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		u, err := ead.Parse(bytes.NewReader(document), "name")
		if err != nil {
			return
		}
		if u.ID == "" || u.Title == "" {
			t.Fatalf("got a unit without a name: %+v", u)
		}
		archive.Describe(u, archive.PI(u.ID), nil)
	})
}
