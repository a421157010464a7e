package routing_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/routing"
)

func TestLimitedRoutesAreUnfit(t *testing.T) {
	t.Parallel()
	all := routing.Routes{{Pool: "a", Model: "m"}, {Pool: "b", Model: "n"}, {Pool: "c", Model: "n", Unfit: "other"}}
	got := all.Limited(func(model string) bool { return model == "m" })
	if got[0].Unfit != "" || got[1].Unfit != "the token may not use the model n" || got[2].Unfit != "other" || all[1].Unfit != "" {
		t.Errorf("got %+v of %+v, want the route to b unfit in a copy", got, all)
	}
	if got := routing.Routes(nil).Limited(func(string) bool { return false }); got != nil {
		t.Errorf("got %+v, want nil", got)
	}
}
