// Package outside is what can be seen and done from outside of a running
// Sortie: its HTTP API as a client has it, the machines API that it drives, and
// the object store that it writes to.
//
// Client holds every answer to the OpenAPI document. Nothing here knows how or
// where a Sortie runs, and nothing trusts what it says about itself. It is for
// tests: a call that cannot be made ends the test.
package outside
