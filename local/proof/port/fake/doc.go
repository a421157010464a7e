// Package fake has a fake of each port for the tests of the port's callers:
//
//	store := fake.NewStore(sqlite, fake.Seeded(seed, 0.1), func(err error) { t.Error(err) })
//
// Store, Webhooks, Outbox and Executions wrap another adapter. The other fakes work in memory.
// Each fake passes the conformance suite of its port.
//
// A Plan makes calls fail in two ways: the call is not applied, or it is applied and reported
// as failed. As with a remote service, the caller cannot distinguish them. Both return an
// Unavailable fault.
//
// Store, Webhooks, Feed and Runner also check their callers. They report a call to the test that
// the port does not allow, given the results of earlier calls.
package fake
