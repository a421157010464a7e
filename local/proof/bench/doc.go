// Command bench measures the local stack and prints one table. It asserts nothing. Compare
// figures only on the same machine.
//
//	go run ./local/proof/bench            everything, some minutes
//	go run ./local/proof/bench -only runs,worker
//	go run ./local/proof/bench -only starts -json
//
// It starts itself as the stack, the source and the workers, so each measured part is its own
// process.
package main
