// Package command implements the command line of Sortie.
//
// Standard output has results: one JSON object with --json, otherwise text that a script can
// parse. Progress, notes and errors go to standard error. An error says what happened and what
// to do. Exit codes are part of the interface: see package cli.
//
// The package reads the environment, the clock and signals only through a cli.Program.
//
// # A new resource
//
// A resource of the API has a file named after it, such as webhooks.go: one function returns the
// group with its commands, and program.go lists the groups. What all resources have in common is
// written once, in cli/resource.go:
//
//	Resources      the group, with the flags of the server
//	Printed, ByID  a command that reads one thing and shows it
//	Pages, Given   a list with pages and filters
//	Removal        a command that deletes
//	Result, Table  the output, as text or with --json
//
// What remains is the call of package client, the columns of the list, and the help. A call that
// the client lacks is a method in client, in the file of the resource.
package command
