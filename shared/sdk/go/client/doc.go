// Package client is the Go client of Sortie: it creates and follows runs, manages jobs, and
// reads events. It needs the standard library alone.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
//	...
//	run, err := c.Runs.Create(ctx, &api.RunDefinition{Image: "exec:/bin/echo", Command: []string{"hello"}})
//	...
//	ended, err := c.Runs.Wait(ctx, run.RunID)
//
// Each operation of the API has a method, in the group of its resource: Client.Runs,
// Client.Jobs, Client.Events. The objects are in package api.
//
// # Lists
//
// A list is a Pages, which reads a page when it is needed:
//
//	for run, err := range c.Runs.List(client.RunsListQuery{State: api.StateFailed}).All(ctx) {
//
// # Errors
//
// A refused request returns *Error with the code of the problem. errors.Is compares it with
// ErrNotFound, ErrConflict and the others, which are classes of status codes. A request
// without an answer returns *ConnectionError.
//
// Requests that fail in the network, or with 429 or 5xx, are sent again, with delays, if that
// has no second effect: reads, idempotent changes, and requests with an idempotency key, which
// the client adds itself. Client.Retry waits until a server is back, for as long as its Outage
// says:
//
//	err := c.Retry(ctx, client.Outage{Limit: time.Minute}, func() (err error) {
//		run, err = c.Runs.Get(ctx, id)
//		return err
//	})
//
// # Types of the caller
//
// Client.Do, Client.Open and Client.NewRequest take a Request, for programs that decode answers
// into types of their own.
//
// # Streams
//
// Events.Stream, Tasks.FollowLogs and Inference.Stream connect again after a break, and
// continue behind the last message. A stream ends with its context.
//
// # Webhooks
//
// VerifyWebhook checks the signature and the age of a delivery and returns its event.
package client
