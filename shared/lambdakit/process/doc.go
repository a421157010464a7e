// Package process is one Lambda function's process: what its main wires, and the
// loop that serves it.
//
//	main:  p := process.Start("status")
//	       adapters from p.Need, p.Option, p.AWS ...       no call is made
//	       p.ServeHTTP(routes, tokens)                     does not return
//
// It promises that every problem of the environment is named at once; that
// nothing is asked over the network before the first event; that a log line is
// one JSON object with the function, its version, the request's id and whether
// the process is new; and that no line has a token, a query or a presigned URL,
// whoever wrote it.
//
// With the argument -check a process is wired and not served: it prints the names
// of the variables it read, one a line, or its problems, and exits with 0 or 2.
package process
