package catalog_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestSharesAreThoseOfTheSplit counts the shares of consecutive ids.
func TestSharesAreThoseOfTheSplit(t *testing.T) {
	t.Parallel()
	d := catalog.Definition{Split: []catalog.Share{{Model: "new", Percent: 5}, {Model: "old", Percent: 20}}}
	const tasks = 20_000
	got := map[string]int{}
	for i := range tasks {
		id := spec.InferenceTaskID(time.UnixMilli(int64(i/7)), [10]byte{byte(i), byte(i >> 8)})
		s, ok := d.ShareOf(id)
		if again, _ := d.ShareOf(id); again != s || ok != (s.Model != "") {
			t.Fatalf("got %+v and %+v of one id", s, again)
		}
		got[s.Model]++
	}
	for model, want := range map[string]int{"new": tasks / 20, "old": tasks / 5, "": tasks * 3 / 4} {
		if n := got[model]; n < want*9/10 || n > want*11/10 {
			t.Errorf("got %d of %d tasks for %q, want about %d", n, tasks, model, want)
		}
	}
	all := catalog.Definition{Split: []catalog.Share{{Model: "new", Percent: 100}}}
	if s, ok := all.ShareOf("inf_1"); !ok || s.Model != "new" {
		t.Errorf("got %+v of a split of 100 percent, want all tasks", s)
	}
}
