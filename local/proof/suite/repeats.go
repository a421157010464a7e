package suite

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/contract"
)

func repeats() []Test {
	return []Test{
		{Name: "an idempotency key stands for one run", Needs: []Capability{AnySource}, Run: oneRun},
		{Name: "a key that comes many times at once is one run", Needs: []Capability{AnySource}, Run: oneRunAtOnce},
	}
}

func oneRun(c *Case) {
	body, key := string(outside.Encode(c.T, c.quick("one"))), c.Batch("key")
	first := c.Call(http.MethodPost, "/export/mods", body, "Idempotency-Key", key)
	if first.Status != http.StatusAccepted {
		c.T.Fatalf("%d %s", first.Status, first.Body)
	}
	task := outside.Decode[contract.ExportAccepted](c.T, first.Body).TaskID
	c.tasks.add(task)
	for range 2 {
		again := c.Call(http.MethodPost, "/export/mods", body, "Idempotency-Key", key)
		if again.Status != http.StatusOK || !bytes.Equal(first.Body, again.Body) {
			c.T.Errorf("again: %d %s", again.Status, again.Body)
		}
		c.End(task) // and after its end
	}
	other := string(outside.Encode(c.T, contract.ExportRequest{PI: samples.SampleRoot}))
	if answer := c.Call(http.MethodPost, "/export/mods", other, "Idempotency-Key", key); answer.Status != http.StatusUnprocessableEntity {
		c.T.Errorf("another request: %d %s", answer.Status, answer.Body)
	}
}

func oneRunAtOnce(c *Case) {
	body, key := string(outside.Encode(c.T, c.quick("one"))), c.Batch("key")
	answers := make([]outside.Answer, 10)
	var clients sync.WaitGroup
	for i := range answers {
		clients.Go(func() { answers[i] = c.Call(http.MethodPost, "/export/mods", body, "Idempotency-Key", key) })
	}
	clients.Wait()
	made := 0
	for _, a := range answers {
		if a.Status == http.StatusAccepted {
			made++
		}
		if a.Status != http.StatusAccepted && a.Status != http.StatusOK || !bytes.Equal(a.Body, answers[0].Body) {
			c.T.Errorf("it is answered %d %s, and %s before", a.Status, a.Body, answers[0].Body)
		}
	}
	if made != 1 {
		c.T.Errorf("%d runs were made", made)
	}
	task := outside.Decode[contract.ExportAccepted](c.T, answers[0].Body).TaskID
	c.tasks.add(task)
	c.End(task)
}
