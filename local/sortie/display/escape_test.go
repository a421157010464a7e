package display_test

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/local/sortie/display"
)

func TestEscapeShowsControlCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\r\nand é 日本\n": "plain\ttext\r\nand é 日本\n",
		"\x1b[2J\x1b]0;title\x07":   `\x1b[2J\x1b]0;title\x07`,
		"over\rwritten":             `over\x0dwritten`,
		"\u009b31m":                 `\u009b31m`,
		"a\x9bb\xff":                `a\x9bb\xff`,
		"\u202eexe.txt\u2066":       `\u202eexe.txt\u2066`,
		"\u061c\u200e\x7f\x00":      `\u061c\u200e\x7f\x00`,
		"cut \xe6\x97":              `cut \xe6\x97`,
	} {
		if got := string(display.Escape([]byte(text))); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestEscapedJSONMeansTheSame(t *testing.T) {
	t.Parallel()
	const text = "\x1b[2J \u009b31m \u202e \u2066 é 日本 \x7f \U0001F600"
	plain, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	safe := display.EscapeJSON(plain)
	var got string
	if err := json.Unmarshal(safe, &got); err != nil || got != text {
		t.Errorf("got %q, %v, want %q", got, err, text)
	}
	for _, r := range string(safe) {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("got %U in %s, want it escaped", r, safe)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"a\x1b[0m", "\u202e", "\xff\x9b", "é\r\n\t"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		safe := display.Escape(text)
		if !utf8.Valid(safe) {
			t.Fatalf("got invalid UTF-8 %q", safe)
		}
		for _, r := range string(safe) {
			if r != '\n' && r != '\t' && r != '\r' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("got %U in %q, want it escaped", r, safe)
			}
		}
	})
}
