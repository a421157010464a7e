// Package outside accesses a running Sortie deployment from outside: its HTTP API, the machines
// API that it uses, and the object store that it writes to.
//
// Client checks every response against the OpenAPI document. The package does not depend on how
// or where Sortie runs. It is for tests: a failed call ends the test.
package outside
