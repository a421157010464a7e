// Package porttest has a conformance suite for each interface of package port but port.Store,
// whose suite is package storetest. Every adapter and every fake passes the suite of its port.
//
//	func TestSigner(t *testing.T) {
//		porttest.Signer(t, func(t *testing.T) port.Signer { return open(t) })
//	}
//
// A suite checks the contract in the port's comments, only by calls of the port. The adapter's
// own tests check everything that the adapter guarantees beyond the port.
//
// Tally and LintMetrics are for tests of metrics, AddressAttacks for tests of code that accepts
// a URL.
package porttest
