package mutant_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/report/mutant"
)

const source = `package p

const limit = 3 + 4

func f(a, b int) (bool, error) {
	if a < b && !odd(a) {
		note(a)
		return true, nil
	}
	if err := check(a); err != nil {
		return false, err
	}
	a = b
	c := a
	return c == 1, nil
}
`

func TestOf(t *testing.T) {
	t.Parallel()
	mutants, err := mutant.Of("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"p.go:6: condition never holds", "p.go:6: && to ||", "p.go:6: < to <=", "p.go:6: < to >=", "p.go:6: negation dropped",
		"p.go:7: call dropped", "p.go:8: true to false",
		"p.go:10: condition never holds", "p.go:10: != to ==", "p.go:11: false to true", "p.go:11: err to nil",
		"p.go:13: assignment dropped", "p.go:15: == to !=",
	}
	var got []string
	for _, m := range mutants {
		got = append(got, m.String())
		if string(m.Source) == source {
			t.Errorf("%s changes nothing", m)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if i := slices.Index(got, "p.go:6: negation dropped"); i >= 0 && !strings.Contains(string(mutants[i].Source), "a < b && odd(a)") {
		t.Errorf("the dropped negation leaves\n%s", mutants[i].Source)
	}
}

func TestOfRefusesWhatIsNotGo(t *testing.T) {
	t.Parallel()
	if _, err := mutant.Of("p.go", []byte("package")); err == nil || !strings.Contains(err.Error(), "p.go") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}
