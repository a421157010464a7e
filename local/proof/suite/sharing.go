package suite

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// poolIsOffered offers a pool to another tenant for one task, and withdraws the offer while it runs.
func poolIsOffered(c *Case) {
	model, done := c.serve(served{kind: "mock", replica: document{}, context: 32768}, "offered", 2)
	path, guest := c.poolPath("mock-offered"), *c
	guest.Client = c.as(c.Target.Others.Stranger)
	offer := func(more string) {
		send[contract.Pool](c, http.MethodPut, path, `{"engine":{"kind":"mock","model":"`+model+`","slots":2,"replicas":[{}]}`+more+`}`, http.StatusOK)
	}
	offer(`,"sharing":{"offers":[{"tenant":"stranger","slots":1}]}`)
	p, _ := send[contract.Pool](&guest, http.MethodPut, path, `{"from":{"tenant":"default","pool":"`+strings.TrimPrefix(path, "/v1/pools/")+`"}}`, http.StatusCreated)
	guest.inState(guest.ask(model, `,"max_tokens":5`), "Completed")
	first, second := guest.ask(model, `,"max_tokens":20000`), guest.ask(model, `,"max_tokens":5`)
	guest.inState(first, "Running")
	found := outside.Get[contract.PoolGuests](c.Client, path+"/guests").Guests
	if p.Engine != nil || p.Limit != 1 || p.From.Model != model || len(found) != 1 || found[0].Held != 1 || found[0].Queued != 1 || found[0].Tasks != 1 || found[0].Tokens < 5 {
		c.T.Errorf("got %+v with %+v, want one ended, one running and one queued task of the guest", p, found)
	}
	offer("")
	c.eventually("refusal by name", func() bool {
		return strings.Contains(string(guest.Call(http.MethodPost, "/v1/tasks", `{"model_ref":"`+model+`","prompt":"a"}`).Body), "does not offer the pool")
	})
	guest.cancel(second, http.StatusOK)
	guest.cancel(first, http.StatusAccepted)
	guest.inState(first, "Cancelled")
	guest.removePool(path)
	done()
}
