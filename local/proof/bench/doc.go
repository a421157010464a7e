// Command bench measures the local stack and prints one table. It asserts
// nothing: a figure is for people to compare, on the same machine.
//
//	go run ./local/proof/bench            everything, some minutes
//	go run ./local/proof/bench -only runs,worker
//
// It runs itself again as the stack, the source and the workers that it
// measures, so that each has a process of its own to be measured.
package main
