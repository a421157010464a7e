package suite

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func idempotencyKeys() []Test {
	return []Test{
		{Name: "idempotency key returns the existing run", Requires: []Capability{AnySource}, Run: oneRun},
		{Name: "concurrent requests with one key create one run", Requires: []Capability{AnySource}, Run: oneRunAtOnce},
	}
}

func oneRun(c *Case) {
	body, key := string(outside.Encode(c.T, c.shortRequest("one"))), c.Batch("key")
	first := c.Call(http.MethodPost, "/export/mods", body, "Idempotency-Key", key)
	if first.Status != http.StatusAccepted {
		c.T.Fatalf("first request: got %d %s, want 202", first.Status, first.Body)
	}
	task := outside.Decode[contract.ExportAccepted](c.T, first.Body).TaskID
	c.tasks.add(task)
	for range 2 {
		again := c.Call(http.MethodPost, "/export/mods", body, "Idempotency-Key", key)
		if again.Status != http.StatusOK || !bytes.Equal(first.Body, again.Body) {
			c.T.Errorf("repeated request: got %d %s, want 200 with the first answer", again.Status, again.Body)
		}
		c.End(task) // so that the second repetition follows the end
	}
	other := string(outside.Encode(c.T, contract.ExportRequest{PI: samples.SampleRoot}))
	if answer := c.Call(http.MethodPost, "/export/mods", other, "Idempotency-Key", key); answer.Status != http.StatusUnprocessableEntity {
		c.T.Errorf("same key, other request: got %d %s, want 422", answer.Status, answer.Body)
	}
}

func oneRunAtOnce(c *Case) {
	body, key := string(outside.Encode(c.T, c.shortRequest("one"))), c.Batch("key")
	answers := make([]outside.Answer, 10)
	var clients sync.WaitGroup
	for i := range answers {
		clients.Go(func() { answers[i] = c.Call(http.MethodPost, "/export/mods", body, "Idempotency-Key", key) })
	}
	clients.Wait()
	created := 0
	for _, a := range answers {
		if a.Status == http.StatusAccepted {
			created++
		}
		if a.Status != http.StatusAccepted && a.Status != http.StatusOK || !bytes.Equal(a.Body, answers[0].Body) {
			c.T.Errorf("got %d %s, want the answer %s", a.Status, a.Body, answers[0].Body)
		}
	}
	if created != 1 {
		c.T.Errorf("got %d runs, want 1", created)
	}
	task := outside.Decode[contract.ExportAccepted](c.T, answers[0].Body).TaskID
	c.tasks.add(task)
	c.End(task)
}
