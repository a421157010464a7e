// Package process runs a Lambda function: it reads the function's variables and serves its
// handler.
//
//	main:  p := process.Start("status")
//	       adapters from p.Need, p.Option, p.AWS ...       no call
//	       p.ServeHTTP(routes, tokens)                     does not return
//
// A process reports all problems of its variables at once, including SORTIE_ variables that
// look misspelt. It makes no network call before its first event. A log line is one JSON object
// with the function, its version, the request's id and whether the process is new. No line
// contains a token, a query or a presigned URL, even if it comes from a library.
//
// With the argument -check a process does not serve. It prints the names of the variables that
// it read, one per line, and exits with 0. If it has problems, it prints them and exits with 2.
package process
