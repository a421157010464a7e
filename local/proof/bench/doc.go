// Command bench measures the local stack and prints one table. It asserts
// nothing: figures are to be compared on the same machine.
//
//	go run ./local/proof/bench            everything, some minutes
//	go run ./local/proof/bench -only runs,worker
//	go run ./local/proof/bench -only starts -json
//
// It starts itself as the stack, the source and the workers, so that each
// measured part is a process.
package main
