package formats

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/worker/record"
)

func TestURI(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "  ": "", " https://a.org/x ": "https://a.org/x",
		"https://a.org/a b/é?q=[1]&r=<x>#f#g": "https://a.org/a%20b/%C3%A9?q=%5B1%5D&r=%3Cx%3E#f%23g",
		"https://a.org/100%/%41":              "https://a.org/100%25/%41",
		"https://u:p@[::1]:80/x":              "https://u:p@[::1]:80/x",
		"http://host:80a/x":                   "http://host%3A80a/x",
		"http://host:999999/x":                "http://host%3A999999/x",
		"http://[x/":                          "http://%5Bx/",
		"::":                                  "%3A%3A",
		"a b:c":                               "a%20b%3Ac",
		"urn:isbn:1":                          "urn:isbn:1",
		"line\r\nend":                         "line%0D%0Aend",
		"PLACE HOLDER":                        "PLACE%20HOLDER",
		"/a:b":                                "/a:b",
		"a/b:c":                               "a/b:c",
	} {
		if got := URI(text); got != want {
			t.Errorf("URI(%q) = %q, want %q", text, got, want)
		}
	}
}

// reference is RFC 3986's grammar of a URI reference, except the inside of IP literals.
// (net/url is stricter: it rejects a percent-encoded host.)
var reference = func() *regexp.Regexp {
	const pchar = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})`
	const user = `(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*`
	const name = `(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*`
	const scheme = `[A-Za-z][A-Za-z0-9+.-]*:`
	const host = `//(?:` + user + `@)?(?:\[[0-9A-Fa-f:.]+\]|` + name + `)(?::[0-9]{0,5})?(?:/` + pchar + `*)*`
	const path = `/?(?:` + pchar + `+(?:/` + pchar + `*)*)?`
	const relative = `/?(?:(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+(?:/` + pchar + `*)*)?|/` + pchar + `+(?:/` + pchar + `*)*`
	const rest = `(?:\?(?:` + pchar + `|[/?])*)?(?:#(?:` + pchar + `|[/?])*)?`
	return regexp.MustCompile(`^(?:` + scheme + `(?:` + host + `|` + path + `)|` + host + `|` + relative + `)` + rest + `$`)
}()

func FuzzURI(f *testing.F) {
	for _, seed := range []string{"http://h:1/é", "//:@", "%%%", "a:b:c", "\xff#[]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := URI(text)
		if !reference.MatchString(got) {
			t.Errorf("URI(%q) = %q", text, got)
		}
		if again := URI(got); again != got {
			t.Errorf("URI(%q) = %q, again %q", text, got, again)
		}
		if strings.Trim(got, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%") != "" {
			t.Errorf("URI(%q) = %q", text, got)
		}
	})
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"en": "eng", "nl": "dut", "nl-BE": "dut", "nld": "dut", "dut": "dut", "DE": "ger", "zh-Hant-TW": "chi", "zxx": "zxx", "qab": "qab",
		"sh": "", "cmn": "", "english": "", "xx": "", "": "", "e": "", "en_US": "", "de:": "", "aar": "aar", "aa": "aar", "zza": "zza", "zu": "zul",
	} {
		if got, ok := Language(text); got != want && ok || ok != (want != "") {
			t.Errorf("Language(%q) = %q, %v; want %q", text, got, ok, want)
		}
	}
}

func TestIsW3CDTF(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1971": true, "1971-10": true, "1971-10-21": true, "1971-02-30": false, "1971-13": false, "c. 1971": false, "1971/1972": false,
		"2025-11-13T05:34:54.719Z": true, "2025-11-13T05:34+01:00": true, "2025-11-13T05:34:54": false, "": false, "197": false,
	} {
		if got := IsW3CDTF(text); got != want {
			t.Errorf("IsW3CDTF(%q) = %v", text, got)
		}
	}
}

func TestCreator(t *testing.T) {
	t.Parallel()
	e := &record.Entity{
		Pinax: &record.Pinax{Institution: "The Attic"},
		Graph: &record.Graph{Nodes: []record.Node{{Label: "Kraftwerk", Type: "organization"}, {Label: "Office Depot Jones", Type: "person"}}},
	}
	for name, want := range map[string]NameType{
		"Nixon, Richard M. (President)": Personal, "Jane Doe": Personal, "the attic": Corporate, "Kraftwerk": Corporate,
		"Office Depot Jones": Personal, "National Archives and Records Administration": Corporate, "Press, Frank": Personal,
		"Example University, Department of History": Corporate, "Universityman": Personal,
	} {
		if got := Creator(e, name); got != want {
			t.Errorf("Creator(%q) = %v", name, got)
		}
	}
}
