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

// TestShadowsAreIndependentOfTheSplit counts the tasks that are both in a share and copied.
func TestShadowsAreIndependentOfTheSplit(t *testing.T) {
	t.Parallel()
	half := []catalog.Share{{Model: "new", Percent: 50}}
	d := catalog.Definition{Split: half, Shadow: half}
	const tasks = 10_000
	both, copied := 0, 0
	for i := range tasks {
		id := spec.InferenceTaskID(time.UnixMilli(int64(i)), [10]byte{byte(i), byte(i >> 8)})
		_, split := d.ShareOf(id)
		if s, ok := d.ShadowOf(id); ok && s.Model == "new" {
			copied++
			if split {
				both++
			}
		}
	}
	if copied < tasks*45/100 || copied > tasks*55/100 || both < tasks*22/100 || both > tasks*28/100 {
		t.Errorf("got %d of %d tasks copied, %d of them in the share, want about a half and a quarter", copied, tasks, both)
	}
}
