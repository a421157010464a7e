package limit_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// FuzzForm compares forms with regular expressions.
func FuzzForm(f *testing.F) {
	rows := []struct {
		form limit.Form
		same *regexp.Regexp
	}{
		{limit.Form{First: limit.Letters + limit.Digits, Rest: limit.Letters + limit.Digits + "._:@-", Most: 128}, regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`)},
		{limit.Form{First: limit.Lower + limit.Digits, Rest: limit.Lower + limit.Digits + "-", Last: limit.Lower + limit.Digits, Most: 63}, regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)},
		{limit.Form{First: limit.Letters, Rest: limit.Digits, Most: 3}, regexp.MustCompile(`^[A-Za-z][0-9]{0,2}$`)},
	}
	for _, text := range []string{"", "a", "-", "a-", "a-b", "A1", "A12", "A123", "a\n", "\x00", "é", "aé", "\xff", "a\xff", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 128), strings.Repeat("a", 129)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, row := range rows {
			if got, want := row.form.Matches(text), row.same.MatchString(text); got != want {
				t.Errorf("form %d of %q: got %t, want %t", i, text, got, want)
			}
		}
	})
}
