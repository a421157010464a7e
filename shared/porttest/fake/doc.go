// Package fake has one fake per port, for the tests of their callers:
//
//	store := fake.NewStore(sqlite, fake.Seeded(seed, 0.1), func(err error) { t.Error(err) })
//
// Outputs, Signer, Secrets, Publisher, Feed and Runner work in memory. Store, Outbox and
// Executions wrap another adapter. Each fake passes the conformance suite of its port.
//
// A Plan makes calls fail in two ways: the call is not applied, or it is
// applied and reported as failed. The caller cannot distinguish them, as with a
// remote service. Both return an Unavailable fault.
//
// Store, Feed and Runner also check their callers: a call that the port does not
// allow, whatever earlier calls returned, is reported to the test.
package fake
