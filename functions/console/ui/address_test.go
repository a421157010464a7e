package ui

import (
	"bytes"
	"testing"

	"maragu.dev/gomponents"
)

func markupText(t testing.TB, node gomponents.Node) string {
	t.Helper()
	var text bytes.Buffer
	if err := node.Render(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestAddressesAreRelative checks that no address leads to another origin or runs a script.
func TestAddressesAreRelative(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"./runs":                     ` href="./runs"`,
		"../../runs?state=a&kind=b":  ` href="../../runs?state=a&amp;kind=b"`,
		"#main":                      ` href="#main"`,
		"?attempt=2#L1":              ` href="?attempt=2#L1"`,
		`./"><script>alert(1)`:       ` href="./%22%3e%3cscript%3ealert%281%29"`,
		"./ü\u202e 100%/%2f":         ` href="./%c3%bc%e2%80%ae%20100%25/%2f"`,
		"javascript:alert(1)":        ` href="#refused"`,
		" javascript:alert(1)":       ` href="#refused"`,
		"data:text/html,<script>":    ` href="#refused"`,
		"//hooks.example.org":        ` href="#refused"`,
		"/console/runs":              ` href="#refused"`,
		"https://hooks.example.org/": ` href="#refused"`,
		"":                           ` href="#refused"`,
	} {
		if got := markupText(t, Relative("href", address)); got != want {
			t.Errorf("%q: got %s, want %s", address, got, want)
		}
	}
	if got, want := QueryValue("a b&c=d#e+f/ü"), "a%20b%26c%3Dd%23e%2Bf%2F%C3%BC"; got != want {
		t.Errorf("got query value %s, want %s", got, want)
	}
}
